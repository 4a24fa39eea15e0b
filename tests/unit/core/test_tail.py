"""Of what a process prints the end is kept, however much it is."""

import os
import subprocess
import sys

from speechmeter.core.tail import Tail


def printed(code):
    tail = Tail()
    process = subprocess.Popen([sys.executable, "-c", code], stdout=tail.write_fd)
    os.close(tail.write_fd)
    while tail.read():
        pass
    process.wait()
    tail.close()
    return tail


def test_the_end_of_much_output_is_kept_and_no_more():
    tail = printed("for n in range(50_000): print(f'line {n} ' + 'x' * 100)")
    assert len(tail.kept) == 64 * 1024
    assert tail.last_line() == "line 49999 " + "x" * 100


def test_the_last_line_is_the_last_with_anything_in_it_and_short():
    tail = printed("print('first'); print('y' * 500); print('  '); print()")
    assert tail.last_line() == "y" * 200
    assert printed("pass").last_line() == ""


def test_a_writer_that_is_still_there_is_not_waited_for():
    tail = Tail()
    os.write(tail.write_fd, b"so far")
    tail.drain()
    assert tail.last_line() == "so far"
    os.close(tail.write_fd)
    tail.close()
