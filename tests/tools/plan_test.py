"""plan_test.py PROGRAM FOLLOW: runs palimpsest-plan in all its options on a graph file made here, and
has FOLLOW (follow_schedule.cpp) run backward by the schedules of a program of its own."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

PROGRAM, FOLLOW = sys.argv[1:3]
MIB = 1 << 20
STEPS = 16


def chain(steps):
    """A chain of equal steps and its backward part, which reads each step's input."""
    node = lambda name, inputs: {"name": name, "inputs": inputs, "outputs": [MIB], "cost": 1.0}
    nodes = [{"name": "x", "inputs": [], "outputs": [3 * MIB], "cost": 0, "source": True}]
    nodes += [node("step", [k]) for k in range(steps)]
    nodes += [node("back", [steps + k, steps - 1 - k]) for k in range(steps)]
    return {"format": "palimpsest-graph", "version": 1, "name": "chain", "backward_begins": steps + 1,
            "nodes": nodes, "targets": [2 * steps]}


def live_peak(graph, steps):
    """The README's rule, once more: most bytes live while a node runs."""
    nodes, live, peak, cost = graph["nodes"], {0}, 0, 0
    size = lambda value: 0 if nodes[value].get("source") else nodes[value]["outputs"][0]
    for kind, number in steps:
        if kind == "compute":
            assert set(nodes[number]["inputs"]) <= live, (number, live)
            live.add(number)
            peak = max(peak, sum(map(size, live)))
            cost += nodes[number]["cost"]
        else:
            live.remove(number)
    assert live == {0} | set(graph["targets"]), live
    return peak, cost / sum(node["cost"] for node in nodes)


def run(*arguments, code=0):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == code, (arguments, done)
    assert (done.stderr == "") == (code == 0), (arguments, done)
    assert "\r" not in done.stderr, "progress without a terminal"
    return done.stdout if code == 0 else done.stderr


def read_json(*arguments):
    return json.loads(run(*arguments, "--json"))


def refused(words, *arguments, code=1):
    message = run(*arguments, code=code)
    for word in words:
        assert word in message, (arguments, word, message)


def check_plan(graph):
    keep_all = (STEPS + 1) * MIB
    for budget, planner in [("60%", "auto"), ("0.009765625GiB", "auto"), (12 * MIB, "square_root"),
                            ("100%", "keep_all"), ("12 MiB", "uniform:4"), ("12288KiB", "every:4"),
                            ("80%", "fraction:0.5"), ("12MiB", "automatic")]:
        plan = read_json("g.json", "--budget", budget, "--planner", planner, "--schedule", "s.json")
        assert plan["planner"] == planner
        assert plan["keep_all_peak"] == keep_all
        assert plan["resident"] == 3 * MIB
        assert plan["minimum_budget"] <= plan["peak"] <= plan["budget"] <= keep_all, plan
        assert plan["planning_seconds"] > 0
        assert 1 <= plan["lower_bound"] <= plan["cost_ratio"], plan
        assert abs(plan["gap"] - (plan["cost_ratio"] / plan["lower_bound"] - 1)) < 1e-9, plan
        assert plan["candidates"][0]["cost_ratio"] == plan["cost_ratio"]
        steps = json.loads(pathlib.Path("s.json").read_text())["steps"]
        assert (plan["peak"], plan["cost_ratio"]) == live_peak(graph, steps), plan
        assert plan["recomputed"] == sum(kind == "compute" for kind, _ in steps) - 2 * STEPS
        checked = read_json("g.json", "--check", "s.json", "--budget", plan["budget"])
        for key in ("peak", "cost_ratio", "keep_all_peak", "resident", "recomputed", "lower_bound",
                    "gap"):
            assert checked[key] == plan[key], (key, checked, plan)
    everything = read_json("g.json")
    assert everything["budget"] == keep_all
    assert everything["lower_bound"] == everything["cost_ratio"] == 1 and everything["gap"] == 0
    assert read_json("g.json", "--budget", "60%")["lower_bound"] > 1.05
    smallest = plan["minimum_budget"]
    assert read_json("g.json", "--budget", smallest)["peak"] == smallest
    refused(["no plan of", f"({smallest} bytes)"], "g.json", "--budget", smallest - 1)

    text = run("g.json", "--budget", "10MiB", "--schedule", "s.json")
    for words in ["g.json, 33 nodes", "3.00 MiB (3145728 bytes), outside", "17.0 MiB (17825792 bytes)",
                  "10.0 MiB (10485760 bytes)", "nodes run", "of one pass", "above the least possible", "by auto"]:
        assert words in text, text
    steps = json.loads(pathlib.Path("s.json").read_text())["steps"]
    assert f"s.json, valid, {len(steps)} steps" in run("g.json", "--check", "s.json")
    assert "budget " in run("g.json", "--check", "s.json", "--budget", "10MiB")


def check_sweep():
    everybody = ["auto", "keep_all", "reordered", "greedy", "quick", "search", "square_root", "chain", "min_cut"]
    lines = run("g.json", "--sweep", 5, "--svg", "s.svg").splitlines()
    assert len(lines) == 7, lines
    assert lines[0].split()[3:][:len(everybody)] == everybody, lines
    assert lines[5].split()[2:6] == ["100.0", "%", "1.0000", "1.0000"], lines
    assert lines[1].split()[5] == "-", "keep_all fits only its own peak"
    assert lines[6].startswith("smallest") and "17.0 MiB" in lines[6], lines
    bounds = [float(line.split()[-1]) for line in lines[1:6]]
    assert bounds == sorted(bounds, reverse=True) and bounds[0] > bounds[4] == 1, lines
    svg = pathlib.Path("s.svg").read_text()
    assert svg.startswith("<svg"), svg
    assert all(f">{name}<" in svg for name in everybody + ["lower bound"]), svg

    sweep = read_json("g.json", "--sweep", 5, "--planner", "auto,every:4", "--planner", "keep_all")
    assert [curve["planner"] for curve in sweep["curves"]] == ["auto", "every:4", "keep_all"]
    auto, _, keep_all = sweep["curves"]
    # Each curve begins at its planner's smallest budget; the common budgets that fit follow.
    assert len(auto["points"]) == 6 and len(keep_all["points"]) == 2
    assert all(curve["points"][0]["peak"] == curve["minimum_budget"] for curve in sweep["curves"])
    assert auto["points"][0]["budget"] == auto["minimum_budget"]
    costs = [point["cost_ratio"] for point in auto["points"]]
    assert costs == sorted(costs, reverse=True) and costs[0] > costs[-1] == 1, costs


def check_errors():
    pathlib.Path("bad.json").write_text('{"format":"palimpsest-graph","version":2}')
    pathlib.Path("wrong.json").write_text(
        '{"format":"palimpsest-schedule","version":1,"steps":[["compute",2]]}')
    run("g.json", "--budget", "12MiB", "--schedule", "s.json")
    for words, *arguments in [
            (["cannot open none.json"], "none.json"),
            (["bad.json, version: 2 is unknown"], "bad.json"),
            (["cannot write", "/nowhere/s.json"], "g.json", "--schedule", "/nowhere/s.json"),
            (["cannot write", "/nowhere/s.svg"], "g.json", "--sweep", 2, "--svg", "/nowhere/s.svg"),
            (["step 0, compute 2 (step)", "not live"], "g.json", "--check", "wrong.json"),
            (["[read_schedule] g.json", "format"], "g.json", "--check", "g.json"),
            (["[check] s.json", "more than the budget of 1.00 KiB", "raise the budget"],
             "g.json", "--check", "s.json", "--budget", "1KiB"),
            (["'best' is not a planner", "auto, keep_all", "uniform:SEGMENTS"],
             "g.json", "--planner", "best"),
            (["'square_root' takes no time limit"],
             "g.json", "--planner", "square_root", "--seconds", 1)]:
        refused(words, *arguments)
    for words, *arguments in [
            (["GRAPH.json is required"],),
            (["'2GB' is not a budget", "40%, 2GiB"], "g.json", "--budget", "2GB"),
            (["is not a budget"], "g.json", "--budget", "-1"),
            (["is not a budget"], "g.json", "--budget", "nan%"),
            (["is not a budget"], "g.json", "--budget", ""),
            (["--seconds", "not a number of seconds"], "g.json", "--seconds", -1),
            (["--sweep"], "g.json", "--sweep", 1),
            (["--sweep"], "g.json", "--svg", "s.svg"),
            (["--sweep"], "g.json", "--planner", "auto,keep_all"),
            (["--sweep", "--budget"], "g.json", "--sweep", 3, "--budget", "50%"),
            (["--check", "--planner"], "g.json", "--check", "s.json", "--planner", "auto"),
            (["--list", "--budget"], "--list", "--budget", "50%"),
            (["--colour"], "g.json", "--colour")]:
        refused(words, *arguments, code=2)


def follow(*arguments):
    return subprocess.run([FOLLOW, *map(str, arguments)], capture_output=True, text=True)


def check_schedules_are_followed():
    done = follow("step.json")
    assert done.returncode == 0, done
    graph = json.loads(pathlib.Path("step.json").read_text())
    assert graph["form"] == {"fused": True, "simplified": True}, graph["form"]
    groups = [node["tape_nodes"] for node in graph["nodes"]]
    assert all(groups) and any(len(group) > 1 for group in groups), groups
    for budget, planner in [("100%", "auto"), ("70%", "auto"), ("50%", "greedy"), ("100%", "square_root")]:
        plan = read_json("step.json", "--budget", budget, "--planner", planner, "--schedule", "step_s.json")
        described = json.loads(pathlib.Path("step_s.json").read_text())["graph"]
        assert described["fused"] and described["nodes"] == len(graph["nodes"]), described
        done = follow("step.json", "step_s.json", plan["budget"])
        assert (done.returncode, done.stdout) == (0, f"{plan['recomputed']}\n"), (plan, done)
    refused(["(fused, simplified), but this graph has", f"has {2 * STEPS + 1} nodes and"],
            "g.json", "--check", "step_s.json")
    run("g.json", "--schedule", "s.json")
    done = follow("step.json", "s.json", 1 << 30)
    assert done.returncode == 1 and "[schedule] the schedule is for a graph of 33 nodes and 33 values," in done.stderr, done
    # Files of earlier versions say nothing of graphs; their schedules name the tape's nodes.
    del graph["form"]
    for node in graph["nodes"]:
        del node["tape_nodes"]
    pathlib.Path("old.json").write_text(json.dumps(graph))
    assert read_json("old.json", "--check", "step_s.json")["recomputed"] == plan["recomputed"]
    old = json.loads(pathlib.Path("step_s.json").read_text())
    del old["graph"]
    pathlib.Path("old_s.json").write_text(json.dumps(old))
    assert read_json("step.json", "--check", "old_s.json")["recomputed"] == plan["recomputed"]
    assert follow("step.json", "old_s.json", 1 << 30).returncode == 1


def main():
    os.chdir(folder)
    graph = chain(STEPS)
    pathlib.Path("g.json").write_text(json.dumps(graph))
    check_plan(graph)
    check_sweep()
    check_errors()
    check_schedules_are_followed()
    listed = run("--list")
    names = [line.split()[0] for line in listed.splitlines()]
    assert names[:2] == ["auto", "keep_all"] and "uniform:SEGMENTS" in names, listed
    assert [row["planner"] for row in read_json("--list")] == names
    assert "--schedule" in run("--help")


with tempfile.TemporaryDirectory() as folder:
    PROGRAM, FOLLOW = os.path.abspath(PROGRAM), os.path.abspath(FOLLOW)
    main()
