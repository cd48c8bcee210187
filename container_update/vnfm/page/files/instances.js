// Shows all VNF instances: those that need a decision first, filtered, a page at a time.

import { selected } from "./batch.js";
import { badge, problemOf } from "./operations.js";
import { table } from "./table.js";
import { age, button, element, keep, say, tone } from "./view.js";

const CONDITIONS = {
  "": "All",
  decision: "Needs a decision",
  trouble: "In trouble",
  "at-work": "At work",
  instantiated: "Instantiated",
  "not-instantiated": "Not instantiated",
};
const WAIT_MS = 300;
const at = (id) => document.getElementById(id);
const text = at("instances-text");
const choice = at("instances-package");
let wanted = new URLSearchParams();
let timer = 0;
/** What was shown last. */
let last = [];

/** Takes over the query of the address. */
export function followTable(query) {
  wanted = new URLSearchParams(query);
  if (document.activeElement !== text) text.value = wanted.get("text") ?? "";
}

/** Changes the query in the address; a change of anything but the page goes to the first page. */
function want(changed) {
  clearTimeout(timer);
  const all = { ...Object.fromEntries(wanted), page: "", text: text.value.trim(), ...changed };
  wanted = new URLSearchParams(Object.entries(all).filter(([, value]) => value));
  location.hash = `#/instances${wanted.size ? `?${wanted}` : ""}`;
}

/** page: what the service says of the table, undefined while it has not. */
export function showTable(page, shown) {
  if (!page) return;
  last = [page, shown];
  const { ids, start, found, all, counts } = page;
  const ofAll = Object.values(counts).reduce((sum, count) => sum + count, 0);
  keep(at("conditions"), Object.entries(CONDITIONS), {
    key: ([condition]) => condition,
    make: ([condition, label]) => button(label, () => want({ condition })),
    update: (made, [condition, label]) => {
      const count = condition ? counts[condition] : ofAll;
      say(made, `${label} ${count}`);
      made.setAttribute("aria-pressed", String((wanted.get("condition") ?? "") === condition));
      tone(made, /decision|trouble/.test(condition) && count ? "bad" : "");
    },
  });
  showPackages(page.packages);
  rows.show(() => ids.map((id) => shown.instances.get(id)).filter(Boolean));
  at("selection").hidden = !selected.size;
  say(at("update-selected"), `Update ${selected.size} selected`);
  at("no-rows").hidden = found > 0;
  say(at("no-rows"), all ? "No instance matches." : "No instances yet. Create one in Packages.");
  const end = start + ids.length;
  say(at("rows-shown"), found ? `${start + 1}\u2013${end} of ${found}` : "");
  for (const each of ["rows-before", "rows-after"]) at(each).hidden = ids.length === found;
  at("rows-before").disabled = !start;
  at("rows-after").disabled = end === found;
  at("rows-before").dataset.page = Math.round(start / 50);
  at("rows-after").dataset.page = Math.round(start / 50) + 2;
}

function showPackages(packages) {
  const chosen = wanted.get("vnfd_id") ?? "";
  const key = JSON.stringify([packages, chosen]);
  if (choice.dataset.shown === key) return;
  choice.dataset.shown = key;
  choice.replaceChildren(element("option", { value: "" }, "all"),
    ...packages.map(({ vnfdId, name, count }) =>
      element("option", { value: vnfdId }, `${name || vnfdId} (${count})`)));
  choice.value = chosen;
}

/** Whether it can be updated together with what is selected. */
function canBeSelected({ api, isInstantiated }) {
  const [first] = selected.values();
  return isInstantiated && (first?.api ?? api) === api;
}

const operationOf = ({ id }) => last[1].running.get(id);

const rows = table("Instances", {
  Name: (cell, instance) => {
    if (!cell.firstChild) cell.append(box(instance), element("a", { href: `#/instances/${instance.id}` }));
    const [made, link] = cell.children;
    made.hidden = !last[1].mayChange;
    made.disabled = !canBeSelected(instance);
    made.checked = selected.has(instance.id);
    made.setAttribute("aria-label", `Select ${instance.name}`);
    say(link, instance.name);
  },
  State: (cell, instance) => {
    if (!cell.firstChild) cell.append(element("span", { class: "badge" }), element("p", { class: "message clipped" }));
    const operation = operationOf(instance);
    const [label, how] = badge(instance, operation);
    const { done = 0, total = 0, step = "" } = last[1].progress.get(operation?.id) ?? {};
    say(cell.firstChild, label);
    tone(cell.firstChild, how);
    say(cell.lastChild, (operation ? problemOf(operation) : instance.trouble)
      || (total ? [`${done} of ${total} steps done`, step].filter(Boolean).join(", now: ") : ""));
  },
  Since: (cell, instance) => say(cell, age(operationOf(instance)?.entered ?? instance.since)),
  Package: (cell, instance) => say(cell, instance.package),
  Namespace: (cell, instance) =>
    say(cell, instance.namespace || instance.stack || operationOf(instance)?.namespace || ""),
  Age: (cell, { created }) => say(cell, age(created)),
}, { key: ({ id }) => id });
at("no-rows").before(rows.element);

function box({ id }) {
  const made = element("input", { type: "checkbox" });
  made.addEventListener("change", () => {
    const instance = last[1].instances.get(id);
    if (made.checked && instance) selected.set(id, instance);
    else selected.delete(id);
    showTable(...last);
  });
  return made;
}

text.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(() => want({}), WAIT_MS);
});
choice.addEventListener("change", () => want({ vnfd_id: choice.value }));
at("update-selected").addEventListener("click", () => { location.hash = "#/batch"; });
at("select-shown").addEventListener("click", () => {
  const [{ ids }, { instances }] = last;
  for (const instance of ids.map((id) => instances.get(id)).filter(canBeSelected)) {
    selected.set(instance.id, instance);
  }
  showTable(...last);
});
at("select-none").addEventListener("click", () => {
  selected.clear();
  showTable(...last);
});
for (const each of ["rows-before", "rows-after"]) {
  at(each).addEventListener("click", (event) => {
    want({ page: event.target.dataset.page });
    scrollTo(0, 0);
  });
}
