"""resume_test.py PROGRAM ARGUMENTS...: a training run that is killed in an epoch and continued ends with the bits of
one that is not, also within a smaller memory budget. PROGRAM trains a classifier in two epochs, with the options of
examples/support/classifier_options.h."""
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

COMMAND = sys.argv[1:]


def train(state, *more, code=0):
    done = subprocess.run([*COMMAND, "--state", state, *more], capture_output=True, text=True)
    assert done.returncode == code, (more, done)
    return done.stdout + done.stderr


def train_and_kill(state):
    """Kills the run when it has begun its second epoch."""
    running = subprocess.Popen([*COMMAND, "--state", state], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               text=True)
    for line in running.stderr:
        if line.startswith("epoch 2"):
            running.kill()
            break
    running.communicate()
    assert running.returncode == -signal.SIGKILL, running.returncode


def peaks(output):
    """Of each epoch, in MiB, with three digits."""
    return [float(peak) for peak in re.findall(r"peak ([0-9.]+) MiB", output)]


def main():
    folder = pathlib.Path(sys.argv[1]).resolve().parent
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        whole, killed, limited = (pathlib.Path(temporary) / name for name in ("whole", "killed", "limited"))
        peak, same = peaks(train(whole))
        assert peak == same
        expected = whole.read_bytes()

        train_and_kill(killed)
        assert killed.read_bytes() != expected, "the killed run had already ended"
        assert "after epoch 1\n" in train(killed)
        assert killed.read_bytes() == expected, "the continued run differs"

        budget = 0.6 * peak
        train(limited, "--budget", str(budget), "--stop-after", "1")
        assert limited.read_bytes() != expected, "the stopped run has all epochs"
        [limited_peak] = peaks(train(limited, "--budget", str(budget)))
        assert limited_peak <= 1.01 * budget, (limited_peak, budget)
        assert limited.read_bytes() == expected, "the run within a budget differs"

        assert "remove the file" in train(limited, "--epochs", "3", code=1)
        assert "required 101.00 %" in train(limited, "--require", "101", code=1)
        assert "usage: " in train(limited, "--budget", "less", code=2)


main()
