// Zooms a plot of curves: drag a box, or sideways for an interval of the horizontal axis.
// A double click, Escape or the button resets it. The curves are stretched by the viewBox
// of the inner <svg>; ticks are drawn anew; marks are moved.
(() => {
  const SVG = "http:" + "//www.w3.org/2000/svg";
  const LEAST = 12;  // pixels: a shorter drag is a click, a lower box spans the whole height
  const make = (parent, name, attributes, text = "") => {
    const part = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) part.setAttribute(key, value);
    part.textContent = text;
    return parent.appendChild(part);
  };

  // Round numbers from `low` to `high`, at most `most` of them.
  const round = (low, high, log, most) => {
    const decades = [];
    for (let k = Math.floor(Math.log10(low)); log && 10 ** k <= high; k++) decades.push(k);
    const every = Math.ceil(decades.length / most);
    const inside = (values) => values.filter((v) => v >= low && v <= high);
    const fine = inside(decades.flatMap((k) => [1, 2, 5].map((m) => m * 10 ** k)));
    if (fine.length > most) return inside(decades.filter((k) => k % every === 0).map((k) => 10 ** k));
    if (fine.length > 2) return fine;
    const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find((m) => m * power >= rough);
    const values = [];
    for (let k = Math.ceil(low / step); k * step <= high; k++) values.push(k * step);
    return values;
  };
  const label = (v) => (v !== 0 && (Math.abs(v) < 1e-3 || Math.abs(v) >= 1e6)
    ? Number(v.toPrecision(6)).toExponential() : Number(v.toPrecision(6)).toLocaleString("en-US", { maximumFractionDigits: 6 }));

  const zoomable = (svg) => {
    const { x, y } = JSON.parse(svg.dataset.hover), inner = svg.querySelector("svg");
    const [left, right, bottom, top] = [x[2], x[3], y[2], y[3]];
    const button = svg.parentNode.querySelector(".reset");
    const clamp = (v, a, b) => Math.min(Math.max(v, a), b);
    let drag = null, box = null, drawn = null;
    inner.setAttribute("preserveAspectRatio", "none");

    // Show a part of the plot area: from `a` to `b` across, from `c` down to `d`.
    const view = (a, b, c, d) => {
      const whole = a === left && b === right && c === top && d === bottom;
      svg.zoom = whole ? null : [a, b];
      svg.classList.toggle("zoomed", !whole);
      inner.setAttribute("viewBox", `${a} ${c} ${b - a} ${d - c}`);
      const across = (v) => left + (v - a) / (b - a) * (right - left);
      const down = (v) => top + (v - c) / (d - c) * (bottom - top);
      for (const part of svg.querySelectorAll("[data-y]")) {
        const px = Number(part.dataset.x ?? a), py = Number(part.dataset.y);
        const seen = px >= a - 1 && px <= b + 1 && py >= c - 1 && py <= d + 1;
        const moved = [part.dataset.x ? across(px) - px : 0, down(py) - py];
        part.setAttribute("transform", `translate(${moved})`);
        part.style.display = seen ? "" : "none";
      }
      if (drawn) drawn.remove();
      drawn = make(svg, "g", {});
      svg.prepend(drawn);
      if (!whole) {
        make(drawn, "path", { class: "base", d: `M${left} ${bottom}H${right}` });
        for (const [px, text] of ticks(x, a, b, right - left > 500 ? 8 : 4, across)) {
          make(drawn, "path", { class: "base", d: `M${px} ${bottom}v5` });
          make(drawn, "text", { class: "soft", "text-anchor": "middle", x: px, y: bottom + 19 }, text);
        }
        for (const [py, text] of ticks(y, d, c, 7, down)) {
          make(drawn, "path", { class: "grid", d: `M${left} ${py}H${right}` });
          make(drawn, "text", { class: "soft", "text-anchor": "end", x: left - 8, y: py + 4 }, text);
        }
      }
      button.hidden = !svg.parentNode.querySelector(".zoomed");
    };
    const ticks = ([low, high, start, end, log, zero], from, to, most, place) => {
      const share = (px) => (px - start) / (end - start);
      const value = (px) => (log ? low * (high / low) ** share(px) : low + share(px) * (high - low));
      const px = (v) => start + (end - start)
        * (log ? Math.log(v / low) / Math.log(high / low) : (v - low) / (high - low));
      // Below the smallest positive value, a logarithmic axis shows only 0, at its start.
      const nothing = zero !== null && from === start ? [[place(start), "0"]] : [];
      const values = round(value(from), value(to), log, most).filter((v) => v >= (zero ?? -Infinity));
      return [...nothing, ...values.map((v) => [place(px(v)), label(v)])];
    };
    const reset = () => view(left, right, top, bottom);

    const at = (event) => new DOMPoint(event.clientX, event.clientY)
      .matrixTransform(svg.getScreenCTM().inverse());
    svg.addEventListener("pointerdown", (event) => {
      const p = at(event), inside = p.x >= left && p.x <= right && p.y >= top && p.y <= bottom;
      drag = inside && event.isPrimary && event.button === 0 ? p : null;
    });
    svg.addEventListener("pointermove", (event) => {
      if (!drag) return;
      const p = at(event);
      if (!box && Math.abs(p.x - drag.x) < LEAST) return;
      if (!box) {
        svg.setPointerCapture(event.pointerId);  // the click at the end is no click on a line
        box = make(svg, "rect", { class: "box" });
      }
      const [a, b] = [drag.x, clamp(p.x, left, right)].sort((v, w) => v - w);
      let [c, d] = [drag.y, clamp(p.y, top, bottom)].sort((v, w) => v - w);
      if (d - c < LEAST) [c, d] = [top, bottom];
      box.range = [a, b, c, d];
      const size = { x: a, y: c, width: b - a, height: d - c };
      for (const [key, value] of Object.entries(size)) box.setAttribute(key, value);
    });
    const drop = (event) => {
      if (box && event.type === "pointerup" && box.range[1] - box.range[0] >= LEAST) {
        const { x: a0, y: c0, width, height } = inner.viewBox.baseVal;  // what is shown now
        const [a, b, c, d] = box.range;
        const across = (v) => a0 + (v - left) / (right - left) * width;
        const down = (v) => c0 + (v - top) / (bottom - top) * height;
        view(across(a), across(b), down(c), down(d));
      }
      if (box) box.remove();
      drag = box = null;
    };
    svg.addEventListener("pointerup", drop);
    svg.addEventListener("pointercancel", drop);
    svg.addEventListener("dblclick", (event) => event.target.closest(".legend") || reset());
    return reset;
  };

  for (const figure of document.querySelectorAll("figure")) {
    if (!figure.querySelector("svg[data-hover]")) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "reset";
    button.textContent = "Reset zoom";
    button.hidden = true;
    figure.querySelector("figcaption").prepend(button);
    const resets = [...figure.querySelectorAll("svg[data-hover]")].map(zoomable);
    const all = () => resets.forEach((reset) => reset());
    button.addEventListener("click", all);
    document.addEventListener("keydown", (event) => event.key === "Escape" && all());
  }
})();
