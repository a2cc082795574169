"""Kills runs over ranks at random moments, and continues them. All results must have the same bits.

    killed_ranks_test.py KILLS PROGRAM MPIRUN ARGUMENT...
"""
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

RANKS = 4


def start(ranks, folder, pause):
    command = [*sys.argv[3:], "-n", str(ranks), sys.argv[2], str(folder), str(pause)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finish(process, limit=120):
    """Returns the exit code and the output."""
    output, _ = process.communicate(timeout=limit)
    return process.returncode, output


def processes(folder):
    """The numbers of the processes that run, once all of them do."""
    files = [folder / f"process-{rank}" for rank in range(RANKS)]
    numbers = [int(file.read_text() or 0) for file in files if file.exists()]
    return numbers if len(numbers) == RANKS and all(numbers) else []


def kill_at_random(random_, folder):
    """Kills one rank, or all ranks, of a run. Returns false if the run was quicker."""
    for file in folder.glob("process-*"):
        file.unlink()
    run = start(RANKS, folder, 300)
    while not (numbers := processes(folder)) and run.poll() is None:
        time.sleep(0.001)
    time.sleep(random_.random() * 0.4)
    if random_.random() < 0.7:
        numbers = [random_.choice(numbers)] if numbers else []
    killed = False
    for number in numbers:
        # mpirun ends only after its ranks, so the numbers still belong to them.
        if run.poll() is None:
            try:
                os.kill(number, signal.SIGKILL)
                killed = True
            except ProcessLookupError:
                pass
    code, _ = finish(run)
    return killed and code != 0


def check_kills(kills, folder):
    random_ = random.Random(1)
    killed = ended = resumed = 0
    while killed < kills:
        shutil.rmtree(folder / "journal", ignore_errors=True)
        for _ in range(random_.randint(1, 4)):
            if not kill_at_random(random_, folder):
                break
            killed += 1
        code, output = finish(start(RANKS, folder, 0))
        assert code == 0, output
        results = [(folder / f"result-{rank}").read_text() for rank in range(RANKS)]
        assert all(result.startswith("right") for result in results), results
        ended += 1
        resumed += results[0].endswith("resumed")
        for rank in range(RANKS):
            (folder / f"result-{rank}").unlink()
    assert resumed > 0, "no run continued another one"
    print(f"{killed} kills, {ended} equal results, {resumed} of runs that continued another one")


def check_other_ranks(folder):
    """A run that was killed on four ranks is rejected on three."""
    random_ = random.Random(2)
    for _ in range(20):
        killed = False
        while not (killed and list(folder.glob("journal/rank-0/*.record"))):
            shutil.rmtree(folder / "journal", ignore_errors=True)
            killed = kill_at_random(random_, folder)
        code, output = finish(start(3, folder, 0))
        if code != 0:
            break
        # The run had ended when it was killed, so its journal was there for another run.
    assert "it has processes 4, and this run has processes 3" in output, output
    assert output.count("is of another run") == 1, output


def check_failure(folder):
    """A rank that fails while others wait for its message ends all, with one error."""
    shutil.rmtree(folder / "journal", ignore_errors=True)
    code, output = finish(start(RANKS, folder, -1))
    assert code != 0 and output.count("[ranks] rank 1 failed: cannot read step 20") == 1, output
    # The steps before are not lost.
    code, output = finish(start(RANKS, folder, 0))
    assert code == 0, output
    assert (folder / "result-2").read_text() == "right, resumed"


with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as name:
    check_kills(int(sys.argv[1]), pathlib.Path(name))
    check_other_ranks(pathlib.Path(name))
    check_failure(pathlib.Path(name))
