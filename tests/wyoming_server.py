"""A Wyoming recogniser that always hears the same, as a program: `wyoming_server.py PORT [--die-after N] …`."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path


async def serve(reader, writer, options) -> None:
    while line := await reader.readline():
        head = json.loads(line)
        await reader.readexactly((head.get("data_length") or 0) + (head.get("payload_length") or 0))
        if head["type"] != "audio-stop":
            continue
        if options.die_after == 0:
            print("out of memory on purpose", flush=True)
            os._exit(3)
        options.die_after -= 1
        await asyncio.sleep(options.slow)
        data = json.dumps({"text": "one two"}).encode()
        writer.write(json.dumps({"type": "transcript", "data_length": len(data)}).encode() + b"\n" + data)
        await writer.drain()
    writer.close()


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("--die-after", type=int, default=-1)
    parser.add_argument("--slow", type=float, default=0.0)
    parser.add_argument("--pid")
    options = parser.parse_args()
    # a helper that leaves the group of its parent, as workers of real servers do
    helper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
    if options.pid:
        Path(options.pid).write_text(f"{os.getpid()} {helper.pid}")
    server = await asyncio.start_server(
        lambda reader, writer: serve(reader, writer, options), "127.0.0.1", options.port
    )
    print("ready to serve", flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
