"""How engines that block take part in live measuring: a thread that decodes, a process that decodes, re-decoding."""
