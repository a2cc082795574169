#!/usr/bin/env python3
"""measure.py FILE COMMAND...: runs the command and appends a line of JSON to FILE: the command, the requested level of kernels, and the processor time in seconds."""

import json
import os
import signal
import sys


def main():
    file, command = sys.argv[1], sys.argv[2:]
    child = os.fork()
    if child == 0:
        os.execvp(command[0], command)
    # Signals that ask this program to stop are meant for the command.
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGTERM))
    _, status, usage = os.wait4(child, 0)
    line = json.dumps({"command": command, "kernels": os.environ.get("PALIMPSEST_KERNELS"),
                       "seconds": usage.ru_utime + usage.ru_stime})
    with open(file, "a", encoding="utf-8") as log:
        log.write(line + "\n")
    if os.WIFSIGNALED(status):
        if os.WTERMSIG(status) != signal.SIGKILL:
            signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    return os.waitstatus_to_exitcode(status)


sys.exit(main())
