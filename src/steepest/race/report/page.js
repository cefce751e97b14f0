// Optional: the page works without scripts. This highlights one optimizer in all plots
// (by hovering, tapping or a button) and shows tooltips without delay.
(() => {
  const root = document.documentElement;
  const parts = [...document.querySelectorAll("[data-s]")];
  let pinned = null;

  const show = (key) => {
    root.classList.toggle("picked", key !== null);
    for (const part of parts) part.classList.toggle("on", part.dataset.s === key);
  };
  const pin = (key) => {
    pinned = pinned === key ? null : key;
    for (const b of buttons) b.setAttribute("aria-pressed", String(b.value === pinned));
    show(pinned);
  };

  const bar = document.querySelector(".pick");
  const buttons = [...document.querySelectorAll(".cards tbody tr")].map((row) => {
    const button = document.createElement("button");
    const name = row.querySelector("th");
    button.type = "button";
    button.value = row.dataset.s;
    button.setAttribute("aria-pressed", "false");
    button.append(name.querySelector("svg").cloneNode(true), name.textContent.trim());
    button.addEventListener("click", () => pin(button.value));
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
  document.addEventListener("pointermove", (event) => {
    const part = near(event, ".picture [data-s]");
    show(part ? part.dataset.s : pinned);
    const told = near(event, "[data-tip]");
    tip.hidden = !told;
    if (!told) return;
    tip.textContent = told.dataset.tip;
    const { width, height } = tip.getBoundingClientRect();
    const left = Math.min(event.clientX + 14, innerWidth - width - 8);
    const above = event.clientY - height - 14;
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${above > 8 ? above : event.clientY + 18}px`;
  });
  document.addEventListener("click", (event) => {
    const part = near(event, ".picture [data-s]");
    if (part) pin(part.dataset.s);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && pinned !== null) pin(pinned);
  });
})();
