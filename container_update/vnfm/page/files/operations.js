// Shows lifecycle operations that run or wait for a decision, and the requests about them.

import { send } from "./api.js";
import * as commands from "./commands.js";
import { ask } from "./dialog.js";
import { broken } from "./resources.js";
import { showSteps } from "./steps.js";
import { button, duration, element, head, keep, moment, say } from "./view.js";

export const NAMES = {
  INSTANTIATE: "Instantiate",
  TERMINATE: "Terminate",
  MODIFY_INFO: "Update",
  HEAL: "Heal",
  SCALE: "Scale",
  CHANGE_VNFPKG: "Change the package of",
};
const RUNNING = new Set(["STARTING", "PROCESSING", "ROLLING_BACK"]);
export const TONES = {
  STARTING: "busy",
  PROCESSING: "busy",
  ROLLING_BACK: "busy",
  COMPLETED: "good",
  FAILED_TEMP: "bad",
  FAILED: "bad",
};
const REQUESTS = {
  retry: ["Retry", "The operation goes on where it stopped."],
  rollback: ["Roll back", "What the operation changed is undone."],
  fail: ["Give up", "Nothing is done any more: everything stays as it is now, and the instance is "
    + "free for another operation. This cannot be undone."],
  cancel: ["Cancel operation", "The operation has not begun, and will not."],
};

/** Whether the service works at it, or should. */
export const isRunning = ({ state }) => RUNNING.has(state);

/** Whether it runs, or somebody has to decide what becomes of it. */
export const isUnsettled = (operation) => isRunning(operation) || operation.state === "FAILED_TEMP";

/** An operation in words, with the name that the instance had then. */
export const title = ({ operation, instanceName }) =>
  `${NAMES[operation] ?? operation} ${instanceName}`;

/** From which package to which. */
export const way = ({ oldPackage, newPackage }) =>
  (newPackage && newPackage !== oldPackage ? `${oldPackage} \u2192 ${newPackage}` : oldPackage);

/** The list of operations that run, and of those that wait for a decision. */
export function showRunning(target, operations, shown) {
  keep(target, operations, {
    key: ({ id }) => id,
    make: runningCard,
    update: (card, operation) => updateRunning(card, operation, shown),
    none: "Nothing runs.",
  });
}

function runningCard() {
  return element("li", { class: "card" },
    element("h3", { class: "head" },
      element("span", { class: "name" }),
      element("span", { class: "remark quiet" }),
      element("span", { class: "badge" })),
    element("p", { class: "way quiet" }),
    element("progress", { "aria-label": "Steps that are done" }),
    element("p", { class: "count quiet" }),
    element("p", { class: "problem cause" }),
    element("ul", { class: "broken" }),
    element("div", { class: "buttons" }),
    element("ol", { class: "steps" }));
}

function updateRunning(card, operation, { progress, resources, mayChange }) {
  const { state, started, entered } = operation;
  const lasts = Math.max(0, (Date.now() - new Date(started)) / 1000);
  const remark = `since ${moment(started)}, ${state === "FAILED_TEMP"
    ? `failed ${moment(entered)}` : duration(lasts)}`;
  head(card, title(operation), remark, state, TONES[state]);
  say(card.querySelector(".way"), way(operation));
  const { steps = [], remarks = [], done = 0, total = 0 } = progress.get(operation.id) ?? {};
  const bar = card.querySelector("progress");
  bar.hidden = !total;
  bar.max = total || 1;
  bar.value = done;
  say(card.querySelector(".count"), total ? `${done} of ${total} steps done` : "");
  say(card.querySelector(".cause"), operation.problem);
  showBroken(card.querySelector(".broken"), broken(resources.get(operation.instanceId)));
  keep(card.querySelector(".buttons"), mayChange ? operation.requests : [], {
    key: (request) => request,
    make: (request) => button(REQUESTS[request][0], () => askAbout(operation, request)),
    update: () => {},
  });
  showSteps(card.querySelector(".steps"), steps, remarks);
}

function showBroken(target, found) {
  keep(target, found, {
    key: ([name]) => name,
    make: () => element("li", { class: "problem" }),
    update: (line, [name, state, problem]) =>
      say(line, `${name}: ${state}${problem ? `: ${problem}` : ""}`),
  });
}

function askAbout(operation, request) {
  const [label, effect] = REQUESTS[request];
  ask({
    title: `${label}: ${title(operation)}?`,
    text: `${effect} Instance ${operation.instanceName} (${operation.instanceId}).`,
    command: () => commands.about(operation, request),
    confirm: label,
    act: () => {
      const body = request === "cancel" ? { cancelMode: "FORCEFUL" } : undefined;
      const path = `/vnflcm/${operation.api}/vnf_lcm_op_occs/${operation.id}/${request}`;
      return send("POST", path, body);
    },
  });
}
