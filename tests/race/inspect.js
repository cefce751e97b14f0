// What the tests ask about a page.

// Its size and colours, and every text that is cut off, on another one, or too small.
function inspect(doc) {
  const win = doc.defaultView, root = doc.documentElement;
  const all = [...doc.querySelectorAll("figure > svg")];
  const visible = all.filter((svg) => svg.getClientRects().length);
  const colour = (part) => win.getComputedStyle(part).color;
  const result = {
    width: win.innerWidth,
    scroll: root.scrollWidth,
    pictures: visible.length,
    fetched: win.performance.getEntriesByType("resource").map((e) => e.name),
    paper: win.getComputedStyle(root).backgroundColor,
    ink: colour(doc.body),
    soft: colour(doc.querySelector(".about")),
    colours: [...doc.querySelectorAll("tbody .s")].map(colour),
    outside: [],
    touching: [],
    empty: [],
    smallest: 99,
  };
  for (const svg of visible) {
    const box = svg.getBoundingClientRect(), name = svg.parentNode.id;
    if (box.width < 200 || box.height < 100) result.empty.push(name);
    const shown = (t) => t.textContent.trim() && t.getClientRects().length;
    const texts = [...svg.querySelectorAll("text")].filter(shown);
    const boxes = texts.map((t) => t.getBoundingClientRect());
    boxes.forEach((a, i) => {
      const text = `${name}: ${texts[i].textContent}`;
      result.smallest = Math.min(result.smallest, a.height);
      const across = a.left >= box.left - 1 && a.right <= box.right + 1;
      const up = a.top >= box.top - 1 && a.bottom <= box.bottom + 1;
      if (!across || !up) result.outside.push(text);
      boxes.slice(i + 1).forEach((b, j) => {
        const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        const other = texts[i + 1 + j].textContent;
        if (wide > 1 && high > 4) result.touching.push(`${text} | ${other}`);
      });
    });
  }
  return result;
}

// What happens when a button, a name and a mark are touched.
function touch(doc) {
  const win = doc.defaultView;
  const buttons = [...doc.querySelectorAll(".pick button")];
  const button = buttons[1], key = button.value, tip = doc.querySelector(".tip");
  const escape = () => doc.dispatchEvent(new win.KeyboardEvent("keydown", { key: "Escape" }));
  const plot = doc.querySelector("#loss-by-steps svg.wide");
  const all = [...doc.querySelectorAll("figure > svg.wide .s")];
  const opacities = () => {
    doc.getAnimations().forEach((a) => a.finish());
    const those = (on) => all.filter((s) => (s.dataset.s === key) === on);
    const of = (parts) => [...new Set(parts.map((s) => win.getComputedStyle(s).opacity))];
    return { on: of(those(true)), off: of(those(false)) };
  };
  // How many lines and names of this optimizer, and lines of others, are displayed.
  const shown = () => {
    const parts = [...plot.querySelectorAll(".s")];
    const seen = (s) => win.getComputedStyle(s).display !== "none";
    const lines = parts.filter((s) => s.querySelector(".curve") && seen(s));
    const own = (s) => s.dataset.s === key;
    const names = parts.filter((s) => s.querySelector(".name") && own(s) && seen(s)).length;
    const mine = lines.filter(own).length;
    return { lines: mine, names, others: lines.length - mine };
  };
  const pressed = [button.getAttribute("aria-pressed")];
  const press = () => {
    button.click();
    pressed.push(button.getAttribute("aria-pressed"));
    return shown();
  };
  const result = { buttons: buttons.length, before: opacities(), silent: tip.hidden };
  Object.assign(result, { pressed, shown: shown(), hidden: press(), back: press() });
  const name = plot.querySelector(`.legend[data-s="${key}"] text`);
  name.dispatchEvent(new win.MouseEvent("click", { bubbles: true }));
  result.named = shown();
  name.dispatchEvent(new win.MouseEvent("dblclick", { bubbles: true }));
  result.alone = shown();
  escape();
  plot.querySelector(`[data-s="${key}"] .mark`)
    .dispatchEvent(new win.MouseEvent("click", { bubbles: true }));
  result.clicked = opacities();
  escape();
  result.again = opacities();
  const at = { bubbles: true, clientX: 1270, clientY: 5 };
  const mark = doc.querySelector("figure > svg.wide .ring");
  mark.dispatchEvent(new win.PointerEvent("pointermove", at));
  const { right, top } = tip.getBoundingClientRect();
  return { ...result, tip: tip.hidden ? "" : tip.textContent, right, top };
}

// What a plot shows before and after a drag, and after each way to reset it.
function zoom(doc) {
  const win = doc.defaultView, figure = doc.querySelector("#loss-by-steps");
  const svg = [...figure.querySelectorAll("svg[data-hover]")].find((s) => s.getClientRects().length);
  const inner = svg.querySelector("svg"), button = figure.querySelector(".reset");
  const whole = inner.viewBox.baseVal;
  const [left, top, width, height] = [whole.x, whole.y, whole.width, whole.height];
  svg.setPointerCapture = () => {};  // made-up pointers cannot be captured
  const send = (type, x, y, buttons) => {
    const matrix = svg.getScreenCTM();
    const { x: clientX, y: clientY } = new DOMPoint(left + x * width, top + y * height)
      .matrixTransform(matrix);
    const more = { pointerId: 1, isPrimary: true, button: 0, buttons };
    svg.dispatchEvent(new win.PointerEvent(type, { bubbles: true, clientX, clientY, ...more }));
  };
  const drag = (a, b, c, d) => {
    send("pointerdown", a, b, 1);
    send("pointermove", (a + c) / 2, (b + d) / 2, 1);
    send("pointermove", c, d, 1);
    send("pointerup", c, d, 0);
  };
  const now = () => {
    const { x, y, width, height } = inner.viewBox.baseVal;
    const seen = (t) => win.getComputedStyle(t).display !== "none";
    const ticks = [...svg.querySelectorAll("text.soft")].filter(seen).map((t) => t.textContent);
    send("pointermove", 0.5, 0.5, 0);
    const under = doc.querySelector(".tip").textContent;
    const { outside, touching } = inspect(doc);
    const view = [x, y, width, height];
    return { view, ticks, under, hidden: button.hidden, outside, touching };
  };
  const box = () => drag(0.25, 0.25, 0.75, 0.5);
  const result = { whole: now() };
  box();
  result.box = now();
  doc.dispatchEvent(new win.KeyboardEvent("keydown", { key: "Escape" }));
  result.escape = now();
  drag(0.2, 0.5, 0.6, 0.505);
  result.interval = now();
  svg.dispatchEvent(new win.MouseEvent("dblclick", { bubbles: true }));
  result.double = now();
  box();
  button.click();
  result.button = now();
  drag(0.5, 0.5, 0.505, 0.6);
  result.click = now();
  return result;
}

// The order of the table before and after sorting, and the values under the pointer.
function use(doc) {
  const win = doc.defaultView, table = doc.querySelector(".cards table");
  const names = () => [...table.tBodies[0].rows].map((r) => r.cells[0].textContent.trim());
  const heads = [...table.querySelectorAll("thead button")];
  const state = heads.find((b) => b.textContent === "state bytes/param");
  const result = { before: names() };
  state.click();
  result.up = names();
  state.click();
  result.down = names();
  result.sorted = state.closest("th").getAttribute("aria-sort");
  heads[heads.length - 1].click();
  result.again = names();
  doc.dispatchEvent(new win.KeyboardEvent("keydown", { key: "Escape" }));
  const svg = doc.querySelector("#metric-by-seconds svg.wide");
  const box = svg.getBoundingClientRect();
  const at = { clientX: box.left + 120, clientY: box.top + box.height / 2 };
  svg.dispatchEvent(new win.PointerEvent("pointermove", { bubbles: true, ...at }));
  result.under = doc.querySelector(".tip").textContent;
  result.target = svg.querySelectorAll(".target").length;
  result.files = [...doc.querySelectorAll(".files button")].map((b) => b.textContent);
  result.copies = doc.querySelectorAll(".copy button").length;
  return result;
}

function tell(what) {
  const pre = document.createElement("pre");
  pre.id = "result";
  pre.textContent = JSON.stringify(what);
  document.body.append(pre);
}
