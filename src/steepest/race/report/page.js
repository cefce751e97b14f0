// Optional: the page works without scripts. This hides optimizers (their buttons, or their
// names in a plot), highlights them (hovering, or a click on a line), shows values under
// the pointer, sorts the table, copies code and offers the numbers as files.
(() => {
  const root = document.documentElement;
  const parts = [...document.querySelectorAll("[data-s]")];
  const pinned = new Set(), off = new Set();

  const show = (keys) => {
    root.classList.toggle("picked", keys.size > 0);
    for (const part of parts) part.classList.toggle("on", keys.has(part.dataset.s));
  };
  const pin = (key) => {
    if (!pinned.delete(key)) pinned.add(key);
    show(pinned);
  };
  const hide = (...keys) => {
    for (const key of keys) if (!off.delete(key)) off.add(key);
    for (const b of buttons) b.setAttribute("aria-pressed", String(!off.has(b.value)));
    for (const part of parts) part.classList.toggle("off", off.has(part.dataset.s));
  };
  // Hide all others; if they are hidden already, show them again.
  const alone = (key) => {
    const others = buttons.map((b) => b.value).filter((k) => k !== key);
    const again = others.every((k) => off.has(k));
    hide(...others.filter((k) => off.has(k) === again), ...(off.has(key) ? [key] : []));
  };

  const bar = document.querySelector(".pick");
  const buttons = [...document.querySelectorAll(".cards tbody tr")].map((row) => {
    const button = document.createElement("button");
    const name = row.querySelector("th");
    button.type = "button";
    button.value = row.dataset.s;
    button.setAttribute("aria-pressed", "true");
    button.append(name.querySelector("svg").cloneNode(true), name.textContent.trim());
    button.addEventListener("click", () => hide(button.value));
    button.addEventListener("dblclick", () => alone(button.value));
    return button;
  });
  if (bar) {
    bar.hidden = false;
    bar.append(...buttons);
  }

  for (const box of document.querySelectorAll(".copy")) {
    const button = document.createElement("button"), code = box.querySelector("code");
    button.type = "button";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
      } catch {  // not allowed here: select it, so that Ctrl-C copies it
        getSelection().selectAllChildren(code);
        button.textContent = "Selected";
      }
    });
    box.prepend(button);
  }

  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  document.body.append(tip);
  for (const title of document.querySelectorAll("svg.picture title")) {
    title.parentNode.dataset.tip = title.textContent;
    title.remove();
  }

  const near = (event, what) => event.target.closest && event.target.closest(what);

  // The values of all lines at the evaluation nearest to the pointer, best first.
  const rule = document.createElementNS("http:" + "//www.w3.org/2000/svg", "path");
  rule.setAttribute("class", "target");
  const short = (v) => (v !== 0 && (Math.abs(v) < 1e-3 || Math.abs(v) >= 1e5)
    ? v.toExponential(2) : String(Number(v.toPrecision(4))));
  const under = (svg, event) => {
    const own = JSON.parse(svg.dataset.hover);
    const all = JSON.parse(svg.parentNode.querySelector(".wide").dataset.hover).lines;
    const at = new DOMPoint(event.clientX, event.clientY)
      .matrixTransform(svg.getScreenCTM().inverse());
    const [low, high, start, end, log] = own.x, [, , bottom, top] = own.y;
    if (at.x < start || at.x > end || at.y < top || at.y > bottom) return "";
    const [from, to] = svg.zoom || [start, end];  // see zoom.js
    const share = (from + (at.x - start) / (end - start) * (to - from) - start) / (end - start);
    const x = log ? low * (high / low) ** share : low + share * (high - low);
    const lines = [];
    for (const [key, name, points] of all) {
      if (!points.length || off.has(String(key))) continue;
      if (pinned.size && !pinned.has(String(key))) continue;
      const far = (p) => Math.abs(p[0] - x);
      const point = points.reduce((a, b) => (far(b) < far(a) ? b : a));
      if (x <= points[points.length - 1][0] * 1.01) lines.push(`${name}: ${short(point[1])}`);
    }
    rule.setAttribute("d", `M${at.x} ${top}V${bottom}`);
    svg.append(rule);
    return lines.length ? [`at ${short(x)}`, ...lines].join("\n") : "";
  };
  document.addEventListener("pointermove", (event) => {
    const part = near(event, ".picture [data-s], .pick button");
    show(part ? new Set([...pinned, part.dataset.s || part.value]) : pinned);
    const told = near(event, "[data-tip]"), svg = near(event, "svg[data-hover]");
    rule.remove();
    const text = event.buttons ? "" : told ? told.dataset.tip : svg ? under(svg, event) : "";
    tip.hidden = !text;
    if (!text) return;
    tip.textContent = text;
    const { width, height } = tip.getBoundingClientRect();
    const left = Math.min(event.clientX + 14, innerWidth - width - 8);
    const above = event.clientY - height - 14;
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${above > 8 ? above : event.clientY + 18}px`;
  });

  // A click on a header sorts the table by it; a second click reverses the order.
  const table = document.querySelector(".cards table");
  const heads = table ? [...table.querySelectorAll("thead th")] : [];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      for (const h of heads) h.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const body = table.tBodies[0];
      const value = (row) => {
        const cell = row.cells[column];
        if (!column) return cell.textContent.trim().toLowerCase();
        return cell.dataset.v === undefined ? NaN : Number(cell.dataset.v);
      };
      const order = (a, b) => {
        const [x, y] = [value(a), value(b)];
        if (x !== x || y !== y) return (x !== x) - (y !== y);  // missing ones last
        return (up ? 1 : -1) * (x < y ? -1 : x > y ? 1 : 0);
      };
      body.append(...[...body.rows].sort(order));
    });
  });

  // The numbers as files: they are in the page, compressed.
  const files = document.querySelector(".files");
  for (const packed of document.querySelectorAll("script[data-file]")) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = `Download ${packed.dataset.file}`;
    button.addEventListener("click", async () => {
      const bytes = Uint8Array.from(atob(packed.textContent), (c) => c.charCodeAt(0));
      const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
      const link = document.createElement("a");
      link.download = packed.dataset.file;
      link.href = URL.createObjectURL(await new Response(plain).blob());
      link.click();
      URL.revokeObjectURL(link.href);
    });
    files.append(button);
    files.hidden = typeof DecompressionStream === "undefined";
  }
  document.addEventListener("click", (event) => {
    const name = near(event, ".legend"), part = near(event, "figure [data-s]");
    if (name) hide(name.dataset.s);
    else if (part) pin(part.dataset.s);
  });
  document.addEventListener("dblclick", (event) => {
    const name = near(event, ".legend");
    if (name) alone(name.dataset.s);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    pinned.clear();
    hide(...off);
    show(pinned);
  });
})();
