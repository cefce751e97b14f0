"""The path of each optimizer on two test functions.

Each optimizer starts at the same point and takes the same number of steps at several
learning rates, all in one compiled program. Of the paths that stay inside the panel,
the picture shows the one that ends lowest.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

import steepest
from steepest.race.entrants import entrant, optimizers

from ._svg import document, line, Panel, tag, text

SIZE = (640, 316)  # pixels
STEPS = 100
RATES = [float(f"{a}e{b}") for b in range(-4, 1) for a in (1, 2, 5)] + [10.0]
# What each picture shows, by its name. Wrappers are shown around SGD or Adam. `dpsgd`
# has none: it takes one gradient per example.
OPTIMIZERS = {
    **{one.name: one.name for one in optimizers()},
    "adam_h": "adam_h(routes={'': 'adam_h'})",  # a 2 x 1 matrix is a vector otherwise
    "cautious": "cautious(adam)",
    # By their own rules, a matrix with a side of one goes to AdamW.
    "adam_mini": "adam_mini(routes={'': 'in out'})",
    "apollo": "apollo(routes={'': 'apollo'})",
    "apollo_mini": "apollo_mini(routes={'': 'apollo_mini'})",
    "fira": "fira(routes={'': 'fira'})",
    "galore": "galore(rank=1, update_proj_gap=5)",  # its own gap is 200 steps
    "lookahead": "lookahead(sgd)",
    "mars": "mars(adam)",
    "mechanize": "mechanize(adam, s_init=0.01)",
    "muon_h": "muon_h(routes={'': 'muon_h'})",
    "sam": "sam(sgd)",
    "schedule_free": "schedule_free(sgd)",
}
# They have another formula for matrices: there the params are a 2 x 1 matrix.
MATRICES = {
    "adam_h",
    "adam_mini",
    "adamuon",
    "apollo",
    "apollo_mini",
    "contrib.muon",
    "dion2",
    "fira",
    "galore",
    "kron",
    "muon",
    "muon_h",
    "normuon",
    "psgd",
    "scion",
    "shampoo",
    "soap",
}
STYLE = """\
.levels { fill: currentColor; fill-opacity: .035; stroke: currentColor;
  stroke-opacity: .3; stroke-width: .7 }
.path { fill: none; stroke: var(--line); stroke-width: 1.5; stroke-linejoin: round;
  marker-mid: url(#dot) } #dot circle { fill: var(--line) }
.start { fill: var(--paper); stroke: var(--line); stroke-width: 2 }
.minimum { stroke: var(--ink); stroke-width: 1.5 }
.end { fill: var(--end); stroke: var(--paper) } .name { font-size: 11px }
"""


@dataclass(frozen=True)
class Surface:
    """The function `|r|^2`, where `r = matrix p + offset + (0, bend x^2)`.

    Both test functions have this form, so one program computes both.
    """

    title: str
    matrix: tuple[tuple[float, float], tuple[float, float]]
    offset: tuple[float, float]
    bend: float
    start: tuple[float, float]
    minimum: tuple[float, float]
    levels: tuple[float, ...]
    center: tuple[float, float]  # of the panel
    left: float  # of the panel, in pixels

    @property
    def numbers(self) -> tuple[jax.Array, ...]:
        """The numbers of the function."""
        return tuple(jnp.array(x) for x in (self.matrix, self.offset, self.bend))

    @property
    def panel(self) -> Panel:
        """Where it is drawn."""
        x, y = self.center
        window = (x - 2, x + 2), (y - 1.68, y + 1.68)
        return Panel(self.left, 50, 305, 256, *window)

    def level(self, height: float, points: int = 1000) -> np.ndarray:
        """Where the function has this value: solve for the point of each angle of r."""
        angles = np.linspace(0, 2 * np.pi, points)
        r = np.sqrt(height) * np.stack([np.cos(angles), np.sin(angles)])
        matrix, offset = np.array(self.matrix), np.array(self.offset)
        x, y = np.linalg.solve(matrix, r - offset[:, None])
        return np.stack([x, y - self.bend * x**2 / matrix[1, 1]], axis=1)


def _turned(angle: float, condition: float) -> tuple[tuple[float, float], ...]:
    """The matrix of a quadratic with axes turned by an angle."""
    c, s = np.cos(angle), np.sin(angle)
    low, high = np.sqrt(0.5), np.sqrt(0.5 * condition)
    return (low * c, low * s), (-high * s, high * c)


# Turned axes: along the axes of the plane, a diagonal preconditioner would be perfect.
SURFACES = (
    Surface(
        "Quadratic, condition number 30",
        _turned(np.pi / 6, 30.0),
        (0.0, 0.0),
        0.0,
        (-1.6, 0.3),
        (0.0, 0.0),
        (0.03, 0.25, 1.0, 3.0, 7.0, 14.0, 25.0),
        (0.0, 0.0),
        10.0,
    ),
    Surface(
        "Rosenbrock",
        ((1.0, 0.0), (0.0, 10.0)),
        (-1.0, 0.0),
        -10.0,
        (-1.2, 1.0),
        (1.0, 1.0),
        (0.1, 1.0, 4.0, 16.0, 50.0, 150.0, 400.0),
        (0.0, 0.9),
        325.0,
    ),
)


@dataclass(frozen=True)
class Trajectory:
    """The path of an optimizer.

    Attributes:
        points: of shape `(STEPS + 1, 2)`.
        end: the value at the last point.
        rate: the learning rate, or `None` if the optimizer chooses its step size.
    """

    points: np.ndarray
    end: float
    rate: float | None


def trajectories(name: str) -> list[Trajectory]:
    """The paths of an optimizer on all surfaces, each at its best learning rate."""
    optimizer = entrant(OPTIMIZERS[name], steps=STEPS)
    rates = jnp.array(RATES if optimizer.swept else [1.0])
    shape = (2, 1) if name in MATRICES else (2,)

    def walk(numbers: tuple[jax.Array, ...], start: jax.Array, rate: jax.Array):
        value = lambda p: _value(numbers, p.reshape(2))
        tx = optimizer.make(rate)
        step = steepest.make_train_step(value, tx)
        params: PyTree = start.reshape(shape)
        if name == "lookahead":
            params = steepest.LookaheadParams.init_synced(params)

        def scanned(carry, _):
            params, state, _ = step(*carry)
            shown = _shown(name, params, state).reshape(2)
            return (params, state), (shown, _value(numbers, shown))

        _, (points, values) = jax.lax.scan(
            scanned, (params, tx.init(params)), length=STEPS
        )
        return jnp.concatenate([start[None], points]), values

    over_rates = jax.vmap(walk, (None, None, 0))
    both = jax.jit(jax.vmap(over_rates, (0, 0, None)))
    numbers = jax.tree.map(lambda *x: jnp.stack(x), *[s.numbers for s in SURFACES])
    starts = jnp.array([s.start for s in SURFACES])
    points, values = map(np.asarray, both(numbers, starts, rates))
    used = RATES if optimizer.swept else [None]
    return [_best(used, *one) for one in zip(SURFACES, points, values, strict=True)]


def picture(name: str) -> str:
    """The SVG of an optimizer: one panel for each surface."""
    dot = tag("circle", cx=2, cy=2, r=1.6)
    size = {"markerWidth": 4, "markerHeight": 4, "refX": 2, "refY": 2}
    marker = tag("marker", dot, id="dot", markerUnits="userSpaceOnUse", **size)
    panels = map(_panel, SURFACES, trajectories(name))
    title = f"The path of {OPTIMIZERS[name]} on two test functions"
    where = {"class_": "soft name", "text_anchor": "end"}
    label = text(OPTIMIZERS[name], SIZE[0] - 10, 21, **where)
    return document(title, SIZE, STYLE, [tag("defs", marker), label, *panels])


def _panel(surface: Surface, found: Trajectory) -> str:
    panel, d = surface.panel, lambda points: line(points, closed=True)
    heights = reversed(surface.levels)
    levels = [d(panel.outline(surface.level(height))) for height in heights]
    path = panel.pixels(found.points)
    (low_x, low_y), start, end = panel.pixels(
        np.array([surface.minimum, found.points[0], found.points[-1]])
    ).tolist()
    rate = "" if found.rate is None else f"learning rate {_rate(found.rate)}, "
    caption = f"{rate}f = {_short(found.end)} after {STEPS} steps"
    return tag(
        "g",
        text(surface.title, panel.left, 21, class_="title"),
        text(caption, panel.left, 40, class_="soft"),
        panel.draw(
            tag("g", *[tag("path", d=d) for d in levels], class_="levels"),
            tag("path", class_="path", d=line(path)),
            tag("path", class_="minimum", d=f"M{low_x - 4:.1f} {low_y:.1f}h8m-4-4v8"),
            tag("circle", class_="start", cx=start[0], cy=start[1], r=4),
            tag("circle", class_="end", cx=end[0], cy=end[1], r=4.5),
        ),
    )


def _value(numbers: tuple[jax.Array, ...], p: jax.Array) -> jax.Array:
    matrix, offset, bend = numbers
    r = matrix @ p + offset + jnp.stack([jnp.zeros(()), bend * p[0] ** 2])
    return jnp.sum(r**2)


def _shown(name: str, params: PyTree, state: PyTree) -> jax.Array:
    """The params that a user would evaluate."""
    if name.startswith("schedule_free"):
        return steepest.contrib.schedule_free_eval_params(state, params)
    return params.slow if name == "lookahead" else params


def _best(
    rates: Sequence[float | None],
    surface: Surface,
    points: np.ndarray,
    values: np.ndarray,
) -> Trajectory:
    """Of the paths inside the panel the lowest at the end, or if equal, on the way."""
    values = np.nan_to_num(values.astype(float), nan=1e40, posinf=1e40)
    ends, means = values[:, -1], values.mean(axis=1)
    outside = [not surface.panel.holds(path) for path in points]
    order = lambda k: (outside[k], max(ends[k], 1e-6), means[k])
    k = min(range(len(rates)), key=order)
    return Trajectory(points[k], float(ends[k]), rates[k])


def _rate(x: float) -> str:
    return f"{x:.0e}".replace("e-0", "e-") if x < 0.01 else f"{x:g}"


def _short(x: float) -> str:
    """Two digits."""
    if 0.01 <= x < 1000 or x == 0:
        return f"{x:.2g}"
    mantissa, power = f"{x:.1e}".split("e")
    return f"{mantissa}e{int(power)}"
