// What the tests ask of a page, from beside it.

// Its size and colours, and every text that is cut off, on another one, or too small.
function look(doc) {
  const win = doc.defaultView, root = doc.documentElement;
  const all = [...doc.querySelectorAll("figure > svg")];
  const shown = all.filter((svg) => svg.getClientRects().length);
  const colour = (part) => win.getComputedStyle(part).color;
  const found = {
    width: win.innerWidth,
    scroll: root.scrollWidth,
    pictures: shown.length,
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
  for (const svg of shown) {
    const box = svg.getBoundingClientRect(), name = svg.parentNode.id;
    if (box.width < 200 || box.height < 100) found.empty.push(name);
    const texts = [...svg.querySelectorAll("text")].filter((t) => t.textContent.trim());
    const boxes = texts.map((t) => t.getBoundingClientRect());
    boxes.forEach((a, i) => {
      const said = `${name}: ${texts[i].textContent}`;
      found.smallest = Math.min(found.smallest, a.height);
      const across = a.left >= box.left - 1 && a.right <= box.right + 1;
      const up = a.top >= box.top - 1 && a.bottom <= box.bottom + 1;
      if (!across || !up) found.outside.push(said);
      boxes.slice(i + 1).forEach((b, j) => {
        const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        const other = texts[i + 1 + j].textContent;
        if (wide > 1 && high > 4) found.touching.push(`${said} | ${other}`);
      });
    });
  }
  return found;
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
  const found = { buttons: buttons.length, before: opacities(), hidden: tip.hidden };
  button.click();
  found.after = opacities();
  found.pressed = button.getAttribute("aria-pressed");
  doc.dispatchEvent(new win.KeyboardEvent("keydown", { key: "Escape" }));
  found.again = opacities();
  const label = doc.querySelector(`figure > svg.wide [data-s="${key}"] text`);
  label.dispatchEvent(new win.MouseEvent("click", { bubbles: true }));
  found.clicked = opacities();
  const at = { bubbles: true, clientX: 1270, clientY: 5 };
  const mark = doc.querySelector("figure > svg.wide .ring");
  mark.dispatchEvent(new win.PointerEvent("pointermove", at));
  const { right, top } = tip.getBoundingClientRect();
  return { ...found, tip: tip.hidden ? "" : tip.textContent, right, top };
}

function tell(what) {
  const pre = document.createElement("pre");
  pre.id = "found";
  pre.textContent = JSON.stringify(what);
  document.body.append(pre);
}
