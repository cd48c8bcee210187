// Shows lifecycle operations: those that run with every step and its reasons, the others folded.

import { duration, element, foldable, head, keep, moment, say, tone } from "./view.js";

const NAMES = {
  INSTANTIATE: "Instantiate",
  TERMINATE: "Terminate",
  MODIFY_INFO: "Modify",
  HEAL: "Heal",
  SCALE: "Scale",
  CHANGE_VNFPKG: "Change the package of",
};
const RUNNING = new Set(["STARTING", "PROCESSING", "ROLLING_BACK"]);
const HOW = {
  STARTING: "busy",
  PROCESSING: "busy",
  ROLLING_BACK: "busy",
  COMPLETED: "good",
  FAILED_TEMP: "bad",
  FAILED: "bad",
};
const MARKS = {
  planned: ["\u25cb", ""],
  running: ["\u25d4", "busy"],
  done: ["\u2713", "good"],
  failed: ["\u2717", "bad"],
  undone: ["\u21b6", ""],
  "could not be undone": ["\u2717", "bad"],
};

/** Whether the service works at it, or should. */
export const isRunning = (operation) => RUNNING.has(operation.operationState);

/** Whether it runs, or somebody has to decide what becomes of it. */
export const isUnsettled = (operation) =>
  isRunning(operation) || operation.operationState === "FAILED_TEMP";

/** An operation in words. */
export const title = (operation, instances) =>
  `${NAMES[operation.operation] ?? operation.operation} ${nameOf(operation, instances)}`;

function nameOf(operation, instances) {
  const id = operation.vnfInstanceId;
  return instances.get(id)?.vnfInstanceName || id;
}

/** The list of operations that run, and of those that wait for a decision. */
export function showRunning(target, operations, instances) {
  keep(target, operations, {
    key: ({ id }) => id,
    make: runningCard,
    update: (card, operation) => updateRunning(card, operation, instances),
    none: "Nothing runs.",
  });
}

function runningCard() {
  return element("li", { class: "card" },
    element("h3", { class: "head" },
      element("span", { class: "name" }),
      element("span", { class: "remark quiet" }),
      element("span", { class: "badge" })),
    element("progress", { "aria-label": "Steps that are done" }),
    element("p", { class: "count quiet" }),
    element("p", { class: "problem" }),
    element("p", { class: "hint" }),
    element("ol", { class: "steps" }));
}

function updateRunning(card, operation, instances) {
  const state = operation.operationState;
  const lasts = Math.max(0, (Date.now() - new Date(operation.startTime)) / 1000);
  const remark = `since ${moment(operation.startTime)}, ${state === "FAILED_TEMP"
    ? `failed ${moment(operation.stateEnteredTime)}` : duration(lasts)}`;
  head(card, title(operation, instances), remark, state, HOW[state]);
  const steps = operation.steps ?? [];
  const settled = steps.filter((step) => !["planned", "running"].includes(step.state)).length;
  const bar = card.querySelector("progress");
  bar.hidden = !steps.length;
  bar.max = steps.length || 1;
  bar.value = settled;
  say(card.querySelector(".count"), steps.length ? `${settled} of ${steps.length} steps` : "");
  say(card.querySelector(".problem"), operation.error?.detail ?? "");
  say(card.querySelector(".hint"), state === "FAILED_TEMP"
    ? "Retry goes on with it, rollback undoes it, fail gives it up: "
      + `openstack vnflcm op retry | rollback | fail ${operation.id}`
    : "");
  showSteps(card.querySelector(".steps"), steps, operation.remarks);
}

/** The operations that came to their end, the last one first. */
export function showHistory(target, operations, instances, load) {
  keep(target, operations, {
    key: ({ id }) => id,
    make: (operation) => historyCard(operation, load),
    update: (card, operation) => updateHistory(card, operation, instances),
    none: "No operation came to its end yet.",
  });
}

function historyCard(operation, load) {
  const card = foldable();
  card.querySelector(".body").append(
    element("p", { class: "problem" }),
    element("p", { class: "code quiet" }),
    element("ol", { class: "steps" }),
    element("p", { class: "empty quiet" }));
  card.querySelector("details").addEventListener("toggle", (event) => {
    if (event.target.open) load(operation.id);
  });
  return card;
}

function updateHistory(card, operation, instances) {
  const { startTime, stateEnteredTime, operationState: state, steps } = operation;
  const took = duration((new Date(stateEnteredTime) - new Date(startTime)) / 1000);
  const remark = `${moment(startTime)}, took ${took}`;
  head(card, title(operation, instances), remark, state, HOW[state]);
  say(card.querySelector(".problem"), operation.error?.detail ?? "");
  say(card.querySelector(".code"), operation.id);
  say(card.querySelector(".empty"), steps && !steps.length ? "No object had to change." : "");
  showSteps(card.querySelector(".steps"), steps ?? [], operation.remarks);
}

function showSteps(target, steps, remarks) {
  const leftAlone = (remarks ?? []).map(({ object, kind, text }) =>
    ({ object, action: kind, state: "no action", message: text }));
  keep(target, [...steps, ...leftAlone], {
    key: (step) => `${step.action} ${step.object}`,
    make: stepLine,
    update: updateStep,
  });
}

function stepLine(step) {
  const reasons = (step.reasons ?? []).map((reason) => element("li", {}, reason));
  return element("li", {},
    element("span", { class: "mark", "aria-hidden": "true" }),
    element("div", {},
      element("div", { class: "line" },
        element("span", { class: "object" }, step.object),
        element("span", { class: "quiet" }, step.action),
        element("span", { class: "told" })),
      element("ul", { class: "reasons" }, ...reasons),
      element("p", { class: "message" })));
}

function updateStep(line, step) {
  const [mark, how] = MARKS[step.state] ?? ["\u2022", ""];
  const told = line.querySelector(".told");
  say(line.querySelector(".mark"), mark);
  tone(line.querySelector(".mark"), how);
  say(told, step.seconds ? `${step.state} in ${duration(step.seconds)}` : step.state);
  tone(told, how);
  say(line.querySelector(".message"), step.message ?? "");
}
