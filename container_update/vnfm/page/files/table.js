// The tables of the page: rows keep their elements, and with them the focus, while cells change.

import { button, element, keep } from "./view.js";

/**
 * Makes a table: {element, show(rows)}; rows(isOpen) returns the items, isOpen(key) tells which are.
 *
 * columns: {title: update(cell, item)}; the first one names the row.
 * key(item): what the row is known by; tone(item): the class that tells how it is.
 * detail(item): what a row opens to, kept until it is closed, as {element, update(item)}; null: nothing.
 */
export function table(label, columns, { key, tone = () => "", detail = () => null }) {
  const titles = Object.keys(columns);
  const open = new Map();
  const made = element("table", { class: "table", "aria-label": label },
    element("thead", {}, element("tr", {}, ...titles.map((title) =>
      element("th", { scope: "col" }, title)))));
  let last = () => [];

  function row(item) {
    const cells = titles.map((title, number) => (number
      ? element("td", { "data-title": title }) : element("th", { scope: "row" })));
    const body = element("tbody", {}, element("tr", {}, ...cells));
    body.addEventListener("click", ({ target }) => {
      if (target !== body.querySelector(".open")) return;
      const name = key(item);
      if (!open.delete(name)) open.set(name, null);
      show(last);
    });
    return body;
  }

  function update(body, item) {
    body.className = tone(item);
    const [main, below] = body.rows;
    titles.forEach((title, number) => columns[title](main.cells[number], item));
    const name = key(item);
    main.querySelector(".open")?.setAttribute("aria-expanded", String(open.has(name)));
    if (!open.has(name)) return below?.remove();
    if (!open.get(name)) open.set(name, detail(item));
    const found = open.get(name);
    if (found && !below) {
      body.append(element("tr", { class: "detail" },
        element("td", { colspan: titles.length }, found.element)));
    }
    found?.update(item);
  }

  function show(rows) {
    last = rows;
    keep(made, rows((name) => open.has(name)), { key, make: row, update });
    made.hidden = made.tBodies.length === 0;
  }

  return { element: made, show };
}

/** Gives a cell the button that opens its row, and returns it. */
export function opener(cell, text) {
  if (!cell.firstElementChild) cell.append(button("", () => {}));
  const made = cell.firstElementChild;
  made.className = "open link";
  if (made.textContent !== text) made.textContent = text;
  return made;
}
