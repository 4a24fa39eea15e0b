"""Runs `speechmeter` with a fault planted where the record of one case is written: KIND, then the command's arguments.

The record is that of the case `KIND@writing`; every other one is written as usual.
"""

import json
import os
import signal
import sys

import faulty_subject

from speechmeter.store import lines, run_dir


def torn(path, data):
    with path.open("ab", buffering=0) as file:
        file.write(json.dumps(data).encode()[:100])
    os.kill(os.getpid(), signal.SIGKILL)


def faulty(kind):
    whole = lines.append_line

    def append(path, data):
        meant = data.get("case", {}).get("subject", {}).get("source") == f"{kind}@writing"
        if meant and kind == "launcher-killed":
            torn(path, data)
        if meant and kind == "interrupt":
            os.kill(os.getpid(), signal.SIGINT)
        elif meant:
            faulty_subject.KINDS[kind]()
        whole(path, data)

    return append


if __name__ == "__main__":
    run_dir.append_line = faulty(sys.argv.pop(1))
    from speechmeter.cli.main import main

    main()
