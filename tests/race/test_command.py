"""The program `steepest`, from its arguments to its exit code."""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

import steepest
from steepest.race import _disk, Problem
from steepest.race.terminal import _run
from steepest.race.terminal._command import main
from steepest.race.terminal._folders import new_folder

from .outcomes import digits, EDGES, outcome, sweep

PROBLEM = Problem(init=lambda key: key, loss=lambda params, batch: 0.0)


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """A race that takes no time, and the arguments of the last one."""
    result = {}

    def load(name):
        if name == "nowhere":
            raise ValueError("a bug")
        return replace(PROBLEM, source=name)

    def race(problem, **options):
        result.clear()
        result.update(options, problem=problem.source)
        return digits()

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(_run, "load", load)
    monkeypatch.setattr(_run, "race", race)
    monkeypatch.setattr(
        _run, "write_report", lambda outcome, folder: folder / "report.html"
    )
    monkeypatch.setattr(_run, "results", lambda outcome: json.dumps({"numbers": 1}))
    return result


def _options(asked):
    return {
        key: x for key, x in asked.items() if key not in ("watch", "folder", "resume")
    }


def test_options_reach_the_race(asked):
    tokens = [
        "race",
        "my_module:problem",
        "--optimizers",
        "adamw,lookahead(adamw, 5, 0.5)",
    ]
    tokens += ["--learning-rates", "1e-4:1:5", "--steps", "20", "--seeds", "0,1,7"]
    tokens += ["--target", "-0.5", "--schedule", "cosine_decay_schedule(rate, steps)"]
    tokens += ["--time-budget", "1h30m", "--halving", "--at-once", "8"]
    assert main([*tokens, "--out", "here", "--resume"]) == 0
    assert asked["resume"] and asked["folder"] == Path("here")
    assert _options(asked) == {
        "problem": "my_module:problem",
        "optimizers": ["adamw", "lookahead(adamw, 5, 0.5)"],
        "learning_rates": [1e-4, 1e-3, 1e-2, 1e-1, 1.0],
        "steps": 20,
        "seeds": [0, 1, 7],
        "target": -0.5,
        "schedule": "cosine_decay_schedule(rate, steps)",
        "time_budget": 5400.0,
        "halving": True,
        "at_once": 8,
    }


def test_omitted_options_default_to_the_problems(asked):
    assert main(["race"]) == 0
    assert _options(asked) == {"problem": "small_bytes"}


def test_the_command_line_overrides_the_file(asked):
    Path("race.toml").write_text(
        "problem = 'bytes'\nsteps = 5\nseeds = 2\nresume = true"
    )
    assert main(["race", "--config", "race.toml", "--steps", "7", "--no-resume"]) == 0
    assert _options(asked) == {"problem": "bytes", "steps": 7, "seeds": 2}
    assert not asked["resume"]


def test_at_the_end_there_are_the_table_the_verdict_and_the_report(asked, capsys):
    assert main(["race", "--out", "here"]) == 0
    out, err = capsys.readouterr()
    assert "0.9855 ± 0.0007" in out and "muon at 1e-2 is best" in out
    assert "report: here/report.html" in out
    assert err == ""  # quiet in a pipe


def test_json_goes_to_a_file(asked, capsys):
    assert main(["race", "--json", "numbers.json"]) == 0
    assert json.loads(Path("numbers.json").read_text()) == {"numbers": 1}
    assert "muon" in capsys.readouterr().out


def test_json_on_stdout_is_alone_there(asked, capsys, monkeypatch):
    monkeypatch.setattr(_run, "race", lambda *_, **__: print("imported") or digits())
    assert main(["race", "--json", "-"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == {"numbers": 1}
    assert "imported" in err and "muon at 1e-2 is best" in err


def test_every_race_has_a_folder_of_its_own(asked):
    for wanted in ("small_bytes", "small_bytes-2", "small_bytes-3"):
        assert main(["race"]) == 0
        assert asked["folder"] == Path("races", wanted)
        assert asked["folder"].is_dir()  # no other race can use it
    assert main(["race", "some/module.py:problem"]) == 0
    assert asked["folder"] == Path("races/some-module.py-problem")


def test_races_that_start_together_have_a_folder_each(asked):
    with ThreadPoolExecutor(16) as pool:
        result = list(pool.map(new_folder, ["digits"] * 16))
    assert len({*result}) == 16 and all(path.is_dir() for path in result)


def test_a_race_that_does_not_begin_leaves_no_folder(asked):
    with pytest.raises(ValueError, match="a bug"):
        main(["race", "nowhere"])
    assert [*Path("races").iterdir()] == []


def test_a_report_that_cannot_be_written_costs_no_table(asked, monkeypatch, capsys):
    def full(outcome, folder):
        _disk.write(Path("none/report.html"), [b"a page"])

    monkeypatch.setattr(_run, "write_report", full)
    assert main(["race"]) == 2
    out, err = capsys.readouterr()
    assert "muon at 1e-2 is best" in out
    assert err.startswith("error: race: cannot write none/report.html: no such file")


def test_json_goes_wherever_the_shell_could_write(asked):
    """Through a symbolic link, and into a pipe."""
    Path("numbers.json").write_text("old")
    Path("link.json").symlink_to("numbers.json")
    assert main(["race", "--json", "link.json"]) == 0
    assert Path("link.json").is_symlink()
    assert json.loads(Path("numbers.json").read_text()) == {"numbers": 1}
    assert main(["race", "--json", "/dev/null"]) == 0


def test_a_full_disk_behind_stdout_is_a_one_line_error(tmp_path):
    command = [sys.executable, "-m", "steepest.race", "problems"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode and "Traceback" not in done.stderr
    assert "o space left on device" in done.stderr and done.stderr.count("\n") == 1


def test_resume_goes_on_with_the_last_race(asked, monkeypatch, capsys):
    store = lambda folder: type(
        "", (), {"settings": lambda _, resume: {"problem": "bytes"}}
    )()
    monkeypatch.setattr(_run, "Store", store)
    for age, name in enumerate(["bytes", "digits-2", "digits"]):
        path = Path("races", name, "race.json")
        path.parent.mkdir(parents=True)
        path.touch()
        os.utime(path, (1e9 - age, 1e9 - age))
    assert main(["race", "digits", "--resume"]) == 0
    assert asked["folder"] == Path("races/digits-2")
    assert main(["race", "--resume"]) == 0
    assert asked["folder"] == Path("races/bytes") and asked["problem"] == "bytes"
    assert main(["race", "rosenbrock", "--resume"]) == 2
    assert "no race of rosenbrock in races" in capsys.readouterr().err


def test_the_problem_has_its_own_name(tmp_path, monkeypatch, capsys):
    """It is found again under the other name; a note says what is imported."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "named.py").write_text(
        "from steepest.race import Problem\nimport jax\n"
        "mine = Problem(name='two slopes', init=lambda key: jax.random.normal(key, 2), "
        "loss=lambda p, _: p @ p)"
    )
    options = ["--optimizers", "sgd", "--learning-rates", "0.1", "--seeds", "1"]
    assert main(["race", "named:mine", *options, "--steps", "2", "--out", "here"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("two slopes") and not err
    assert json.loads(Path("here/results.json").read_text())["problem"] == "two slopes"
    assert "named:mine" in Path("here/race.json").read_text()
    assert main(["race", "--resume", "--out", "here"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("two slopes")
    assert err == "here/race.json: importing named:mine, which runs its code\n"


def test_ctrl_c_keeps_the_results_so_far(asked, monkeypatch, capsys):
    def race(problem, watch, **options):
        os.kill(os.getpid(), signal.SIGINT)
        while not watch.stopped():
            time.sleep(0.01)
        return outcome(sweep("adamw", done=0.5), missing=(("muon", "no time"),))

    monkeypatch.setattr(_run, "race", race)
    assert main(["race", "--out", "here"]) == 130
    out = capsys.readouterr().out
    assert "† adamw was stopped after" in out
    assert "stopped; to continue: --resume --out here" in out


@pytest.mark.parametrize("name", ["nothing", "nothing but missing", "all diverged"])
def test_a_race_without_a_winner_has_failed(asked, monkeypatch, name):
    monkeypatch.setattr(_run, "race", lambda *args, **options: EDGES[name]())
    assert main(["race"]) == 1


WRONG = {
    "option": ("race --stps 3", "Unknown option: --stps. Did you mean --steps?"),
    "command": ("rase", 'Unknown command "rase". Did you mean "race"?'),
    "count": ("race --steps x", "--steps: 'x' is not a whole number."),
    "fraction": ("race --steps 1.5", "--steps: '1.5' is not a whole number."),
    "number": ("race --target soon", "--target: 'soon' is not a number."),
    "rates": ("race --learning-rates 1e-3,x", "-rates: 'x' is not a number."),
    "grid": ("race --learning-rates 0:1:5", "-rates: '0:1:5' is not a grid, expected"),
    "huge grid": ("race --learning-rates 1:2:1e9", "'1:2:1e9' is not a grid"),
    "seeds": ("race --seeds 1,b", "--seeds: 'b' is not a whole number."),
    "time": ("race --time-budget 5x", "'5x' is not a time, expected `90s`"),
    "names": ("race --optimizers adamw,lion(", "never closed"),
    "no value": ("race --steps", "--steps requires an argument"),
    "twice": ("race --steps 3 --steps 4", "--steps specified multiple times"),
    "no file": ("race --config no.toml", "no.toml: No such file or directory."),
    "json folder": ("race --json .", "--json: . is a folder, expected a file."),
    "json nowhere": ("race --json no/a.json", "--json: the folder no does not exist."),
    "too much": ("race a b", "b"),
    "schedule": ("plot-schedule cosine(3)", "no optimizer, transformation or schedule"),
    "no steps": (
        "plot-schedule 0.1 --steps 0",
        "--steps is 0, expected at least 1",
    ),
    "optimizer": ("describe admw", "adamw"),
    "pattern": ("optimizers zzz", "no name matches 'zzz'"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_user_errors_take_one_line(wrong, asked, capsys):
    command, message = WRONG[wrong]
    assert main(command.split()) == 2
    out, err = capsys.readouterr()
    assert err.startswith("error: ") and message in err
    assert not out and "Traceback" not in err


def test_a_bug_keeps_its_traceback(asked):
    with pytest.raises(ValueError, match="a bug"):
        main(["race", "nowhere"])


def test_all_tracebacks_can_be_had(asked):
    with pytest.raises(FileNotFoundError):
        main(["race", "--config", "no.toml", "--traceback"])


def test_help_comes_from_the_docstrings(capsys):
    assert main(["race", "--help"]) == 0
    text = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "--learning-rates RATES a list such as 1e-4,1e-3,1e-2, or a" in text
    assert main([]) == 0
    out = capsys.readouterr().out
    for command in ("race", "describe", "plot-schedule", "optimizers", "problems"):
        assert command in out


def test_the_version_is_the_librarys(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == steepest.__version__


def test_plot_schedule_draws_and_prints_some_values(capsys, tmp_path):
    path = tmp_path / "schedule.svg"
    assert (
        main(["plot-schedule", "linear_schedule(1.0, 0.0, 8)", "--svg", str(path)]) == 0
    )
    out = capsys.readouterr().out
    assert "1 ┤⠉" in out and "at 4  0.5" in out
    assert path.read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("pattern", "some", "others"),
    [("adam?", {"adamw"}, {"adam"}), ("DELTA", {"adadelta"}, {"adam"})],
    ids=["shape", "word"],
)
def test_optimizers_are_listed(pattern, some, others, capsys):
    assert main(["optimizers", pattern]) == 0
    names = {line.split()[0] for line in capsys.readouterr().out.splitlines()}
    assert some <= names and not others & names


def test_problems_are_listed(capsys):
    assert main(["problems"]) == 0
    assert "rosenbrock     Rosenbrock's function" in capsys.readouterr().out


def test_describe_is_about_the_model_of_a_problem(capsys):
    assert main(["describe", "adamw(weight_decay=0.1)", "--problem", "rosenbrock"]) == 0
    assert "scale_by_adam, add_decayed_weights" in capsys.readouterr().out


def test_without_its_packages_it_says_what_to_install(monkeypatch, capsys):
    for name in [
        name for name in sys.modules if name.startswith("steepest.race.terminal._app")
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("steepest.race.terminal._app")
    monkeypatch.setitem(sys.modules, "cyclopts", None)
    assert main(["race"]) == 1
    assert 'pip install "steepest[race]"' in capsys.readouterr().err
    for asked in ([], ["--help"], ["race", "-h"]):
        assert main(asked) == 0
        out, err = capsys.readouterr()
        assert "steepest race PROBLEM" in out and "pip install" in out and not err
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == steepest.__version__


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_can_complete(shell, capsys):
    assert main(["completion", shell]) == 0
    out = capsys.readouterr().out
    assert "learning-rates" in out and "plot-schedule" in out


def test_the_library_is_a_program():
    command = [sys.executable, "-m", "steepest", "problems"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "rosenbrock" in result.stdout


def test_a_real_race_ends_at_ctrl_c(tmp_path):
    """From the shell to the files, with a custom problem."""
    problem = "from steepest.race import Problem\nimport jax\nmine = Problem("
    problem += "init=lambda key: jax.random.normal(key, 2), loss=lambda p, _: p @ p)"
    (tmp_path / "my_module.py").write_text(problem)
    command = [sys.executable, "-m", "steepest.race", "race"]
    options = ["my_module:mine", "--optimizers", "sgd", "--learning-rates", "1e-9,1e-8"]
    options += ["--seeds", "1", "--steps", "400000000", "--out", "here"]
    how = {"cwd": tmp_path, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    child = subprocess.Popen([*command, *options], text=True, **how)
    while not list(tmp_path.glob("here/runs/*.begun")) and child.poll() is None:
        time.sleep(0.05)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=100)
    assert child.returncode == 130, err
    assert "\n† sgd was stopped after" in out
    assert "stopped; to continue: --resume --out here" in out
    assert err == "stopping at the next evaluation; Ctrl-C again quits at once\n"
    assert (tmp_path / "here/report.html").exists()


@pytest.mark.parametrize(
    "tokens",
    [
        ["--help"],
        ["--version"],
        ["race", "--help"],
        ["find-lr", "--help"],
        ["describe", "--help"],
        ["plot-schedule", "--help"],
        ["completion", "bash"],
        ["race", "--seeds", "many"],
    ],
    ids=" ".join,
)
def test_it_answers_without_jax(tokens, tmp_path):
    """JAX takes seconds to import, and a shell asks at every tab."""
    for name in ("jax", "numpy", "jaxtyping"):
        (tmp_path / f"{name}.py").write_text("raise AssertionError(__name__)")
    source = Path(steepest.__file__).parent.parent
    env = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{source}"}
    for module in ("steepest", "steepest.race"):
        result = subprocess.run(
            [sys.executable, "-m", module, *tokens],
            env=env,
            capture_output=True,
            text=True,
        )
        assert result.returncode == (2 if "many" in tokens else 0), result.stderr
        assert "AssertionError" not in result.stderr
        assert "not a whole number" in result.stderr or result.stdout
