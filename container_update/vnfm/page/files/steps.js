// Shows the steps of an operation or of a plan, with their reasons and differences.

import { duration, element, keep, say, tone } from "./view.js";

const MARKS = {
  planned: ["\u25cb", ""],
  running: ["\u25d4", "busy"],
  done: ["\u2713", "good"],
  failed: ["\u2717", "bad"],
  undone: ["\u21b6", ""],
  "could not be undone": ["\u2717", "bad"],
};

/** Steps, then what is left alone; isOpen: with their reasons and differences. */
export function showSteps(target, steps, remarks, isOpen = false) {
  const leftAlone = (remarks ?? []).map(({ object, kind, text }) =>
    ({ object, action: kind, state: "no action", message: text }));
  keep(target, [...steps, ...leftAlone], {
    key: (step) => `${step.action} ${step.object}`,
    make: (step) => stepLine(step, isOpen),
    update: updateStep,
  });
}

function stepLine({ object, action, reasons = [], diff = [] }, isOpen) {
  const why = element("details", isOpen ? { open: "" } : {},
    element("summary", {}, "Why"),
    element("ul", { class: "reasons" }, ...reasons.map((reason) => element("li", {}, reason))));
  if (diff.length) why.append(difference(diff));
  why.hidden = !reasons.length && !diff.length;
  return element("li", {},
    element("span", { class: "mark", "aria-hidden": "true" }),
    element("div", {},
      element("div", { class: "line" },
        element("span", { class: "object" }, object),
        element("span", { class: "quiet" }, action),
        element("span", { class: "told" })),
      element("p", { class: "message" }),
      why));
}

function difference(lines) {
  const tones = { "+": "good", "-": "bad" };
  return element("pre", { class: "diff", tabindex: "0", role: "group", "aria-label": "Difference" },
    ...lines.map((line) => element("span", { class: tones[line[0]] ?? "quiet" }, `${line}\n`)));
}

function updateStep(line, step) {
  const [mark, how] = MARKS[step.state] ?? ["\u2022", ""];
  const told = line.querySelector(".told");
  say(line.querySelector(".mark"), mark);
  tone(line.querySelector(".mark"), how);
  say(told, step.seconds ? `${step.state} in ${duration(step.seconds)}` : step.state ?? "");
  tone(told, how);
  say(line.querySelector(".message"), step.message ?? "");
}
