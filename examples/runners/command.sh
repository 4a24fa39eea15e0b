#!/bin/sh
# Measure any program that takes the path of a WAV file and prints what was said: command.sh PROGRAM [ARGUMENT…]
# The program starts anew for every file, so each call includes loading its model.

echo '{"type":"hello","version":1,"name":"command.sh"}'
while read -r line; do
    case $line in
    *'"type":"load"'*) echo '{"type":"loaded"}' ;;
    *'"type":"feed"'*)
        id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
        path=$(printf '%s' "$line" | sed 's/.*"path":"\([^"]*\)".*/\1/')
        if text=$("$@" "$path" </dev/null); then
            text=$(printf '%s' "$text" | tr '\000-\037' ' ' | sed 's/[\\"]/\\&/g')
            printf '{"type":"result","id":%s,"texts":["%s"]}\n' "$id" "$text"
        else
            printf '{"type":"error","message":"the program ended with exit code %s"}\n' "$?"
        fi
        ;;
    *'"type":"bye"'*) exit ;;
    esac
done
