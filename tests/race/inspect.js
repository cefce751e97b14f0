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
    const texts = [...svg.querySelectorAll("text")].filter((t) => t.textContent.trim());
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
  const opacities = () => {
    doc.getAnimations().forEach((a) => a.finish());
    const all = [...doc.querySelectorAll("figure > svg.wide .s")];
    const those = (on) => all.filter((s) => (s.dataset.s === key) === on);
    const of = (parts) => [...new Set(parts.map((s) => win.getComputedStyle(s).opacity))];
    return { on: of(those(true)), off: of(those(false)) };
  };
  const result = { buttons: buttons.length, before: opacities(), hidden: tip.hidden };
  button.click();
  result.after = opacities();
  result.pressed = button.getAttribute("aria-pressed");
  doc.dispatchEvent(new win.KeyboardEvent("keydown", { key: "Escape" }));
  result.again = opacities();
  const label = doc.querySelector(`figure > svg.wide [data-s="${key}"] text`);
  label.dispatchEvent(new win.MouseEvent("click", { bubbles: true }));
  result.clicked = opacities();
  const at = { bubbles: true, clientX: 1270, clientY: 5 };
  const mark = doc.querySelector("figure > svg.wide .ring");
  mark.dispatchEvent(new win.PointerEvent("pointermove", at));
  const { right, top } = tip.getBoundingClientRect();
  return { ...result, tip: tip.hidden ? "" : tip.textContent, right, top };
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
