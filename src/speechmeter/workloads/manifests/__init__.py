"""Lists of utterances as speech toolkits write them: one file a format, each read line by line."""
