"use strict";
// The page is whole without this: it adds a filter, and highlights a workload.
(() => {
  document.documentElement.classList.add("js");
  const plan = document.getElementById("plan-boxes");
  if (!plan) return;
  const nodes = [...plan.querySelectorAll(".node")];
  const filter = document.getElementById("filter");
  const shown = document.getElementById("shown");
  const texts = new Map();

  // Names of pods are in the titles of the tiles; they are read when somebody first looks for one.
  const textOf = (node) => {
    if (!texts.has(node)) {
      const titles = [...node.querySelectorAll("title")].map((title) => title.textContent);
      texts.set(node, (node.dataset.find + " " + titles.join(" ")).toLowerCase());
    }
    return texts.get(node);
  };

  const apply = () => {
    const words = filter.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    let total = 0;
    for (const node of nodes) {
      const size = Number(node.dataset.nodes);
      const fits = words.every((word) => textOf(node).includes(word));
      node.hidden = !fits;
      total += size;
      if (fits) count += size;
    }
    for (const place of plan.querySelectorAll(".place")) {
      place.hidden = !place.querySelector(".node:not([hidden])");
    }
    shown.textContent = words.length ? `${count.toLocaleString("en")} of ${total.toLocaleString("en")} nodes` : "";
  };
  filter.addEventListener("input", apply);
  filter.closest("p").hidden = false;

  const buttons = [...plan.querySelectorAll(".legend button")];
  for (const button of buttons) {
    button.addEventListener("click", () => {
      const on = button.getAttribute("aria-pressed") !== "true";
      for (const other of buttons) other.setAttribute("aria-pressed", String(on && other === button));
      plan.classList.toggle("picked", on);
      for (const tile of plan.querySelectorAll("rect.lit")) tile.classList.remove("lit");
      if (on) for (const tile of plan.querySelectorAll(`rect.c${button.dataset.colour}`)) tile.classList.add("lit");
    });
  }
})();
