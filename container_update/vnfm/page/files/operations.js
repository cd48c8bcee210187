// Shows the operation of an instance that runs or waits for a decision, and the requests about it.

import { send } from "./api.js";
import * as commands from "./commands.js";
import { ask } from "./dialog.js";
import { isBroken, isUndone } from "./objects.js";
import { button, element, fill, head, moment, say } from "./view.js";

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
const NOUNS = {
  INSTANTIATE: "Instantiation",
  TERMINATE: "Termination",
  MODIFY_INFO: "Update",
  HEAL: "Heal",
  SCALE: "Scaling",
  CHANGE_VNFPKG: "Change of package",
};
const WORDS = {
  STARTING: "waits",
  PROCESSING: "runs",
  ROLLING_BACK: "is rolled back",
  FAILED_TEMP: "failed",
};
const STATES = {
  STARTING: "Waiting",
  PROCESSING: "Running",
  FAILED_TEMP: "Failed, needs a decision",
  FAILED: "Given up",
};
const UNDONE = "Everything is as before. This ends the operation.";
const REQUESTS = {
  retry: ["Retry", "The operation continues where it stopped."],
  rollback: ["Roll back", "All changes of the operation are undone."],
  fail: ["Give up", "The operation ends: everything stays as it is now, and the instance accepts "
    + "another operation. This cannot be undone."],
  cancel: ["Cancel operation", "No new step begins, the current ones stop, and all changes "
    + "are undone."],
  promote: ["Promote", "The operation continues: the new version takes over."],
  abort: ["Abort", "The operation goes back: the old version stays."],
};

/** A state of the API in plain words. */
export const word = (state) => STATES[state]
  ?? (state.charAt(0) + state.slice(1).toLowerCase()).replaceAll("_", " ");

/** Whether the service works at it, or should. */
export const isRunning = ({ state }) => RUNNING.has(state);

/** Whether it runs, or waits for a person's decision. */
export const isUnsettled = (operation) => isRunning(operation) || operation.state === "FAILED_TEMP";

/** An operation in words, with the name that the instance had then. */
export const title = ({ operation, instanceName }) =>
  `${NAMES[operation] ?? operation} ${instanceName}`;

/** What went wrong; what to do next is left out where it is a request of the API: it is a button. */
export const problemOf = ({ problem }) =>
  problem.replaceAll(/ ?[^.:]*: POST \/vnflcm\/\S+\/[a-z]+\.?/g, "");

/** From which package to which. */
export const way = ({ oldPackage, newPackage }) =>
  (newPackage && newPackage !== oldPackage ? `${oldPackage} \u2192 ${newPackage}` : oldPackage);

/** Whether it waits for a person. */
const needsDecision = ({ requests }) => requests.some((request) => request !== "cancel");

/** What is true of an instance now, as [text, tone]. */
export function badge({ isInstantiated, trouble }, operation) {
  if (!operation && trouble) return ["In trouble", "bad"];
  if (!operation) return isInstantiated ? ["Instantiated", "good"] : ["Not instantiated", ""];
  const { operation: kind, state } = operation;
  const does = state === "PROCESSING" && needsDecision(operation) ? "waits for you" : WORDS[state];
  return [`${NOUNS[kind] ?? kind} ${does}`, needsDecision(operation) ? "bad" : "busy"];
}

export function operationPanel() {
  return element("div", { class: "card", role: "region", "aria-label": "Operation" },
    element("h3", { class: "head" },
      element("span", { class: "name" }),
      element("span", { class: "remark quiet" }),
      element("span", { class: "badge", hidden: "" })),
    element("p", { class: "problem cause" }),
    element("progress", { "aria-label": "Steps that are done" }),
    element("p", { class: "count quiet" }),
    element("p", { class: "advice" }),
    element("div", { class: "buttons" }));
}

/** What is known of it: how far it is, its steps, and the resources of the instance. */
export function updatePanel(card, operation, { progress, steps, resources, mayChange }) {
  card.hidden = !operation;
  if (!operation) return;
  const { state, started, entered, requestedBy, why } = operation;
  const failed = state === "FAILED_TEMP";
  const begun = failed ? `failed ${moment(entered)}` : `since ${moment(started)}`;
  head(card, `${title(operation)}: ${way(operation)}`,
    [begun, requestedBy && `by ${requestedBy}`].filter(Boolean).join(", ") + (why && `: ${why}`), "", "");
  const { done = 0, total = 0, step = "" } = progress ?? {};
  const bar = card.querySelector("progress");
  bar.hidden = !total || failed;
  bar.max = total || 1;
  bar.value = done;
  const now = step && `, now: ${step}`;
  say(card.querySelector(".count"),
    bar.hidden ? "" : undoing(steps) || `${done} of ${total} steps done${now}`);
  say(card.querySelector(".cause"), problemOf(operation));
  const requests = mayChange ? operation.requests : [];
  const [first, reason] = advice(operation, isBroken(resources), isUndone(steps));
  say(card.querySelector(".advice"), requests.includes(first) ? reason : "");
  const kind = (request) => (request === first ? "main" : request === "fail" ? "danger" : "");
  const order = [first, ...requests.filter((each) => each !== first)].filter((each) => requests.includes(each));
  fill(card.querySelector(".buttons"), [first, requests, isUndone(steps)], () => order.map((request) =>
    button(REQUESTS[request][0], () => askAbout(operation, request, isUndone(steps)), kind(request))));
}

/** How far an operation is that undoes its steps; "" while it does not. */
function undoing({ steps = [] } = {}) {
  const undone = steps.filter(({ state }) => state === "undone").length;
  const begun = steps.filter(({ state }) => !["planned", "not started"].includes(state)).length;
  const goesBack = undone || steps.some(({ state }) => state === "failed");
  return goesBack ? `Undoing: ${undone} of ${begun} steps undone` : "";
}

/** What to do next with an operation that waits for a person, and why. */
function advice({ requests }, isInTrouble, isAsBefore) {
  if (requests.includes("promote")) {
    return isInTrouble ? ["abort", "The new version is not ready. Abort: the old version stays."]
      : ["promote", "All pods are ready. Promote: the new version takes over."];
  }
  if (requests.includes("rollback")) {
    return ["rollback", isAsBefore
      ? "The old version runs as before. Roll back ends this operation, so that a corrected package "
        + "can be used. Retry helps if the cause was outside the package and is fixed."
      : "Some objects are changed. Roll back restores them; Retry continues, after you fix the cause."];
  }
  return ["retry", "Fix the cause, then Retry continues where the operation stopped."];
}

function askAbout(operation, request, isAsBefore) {
  const [label, does] = REQUESTS[request];
  const effect = request === "rollback" && isAsBefore ? UNDONE : does;
  ask({
    title: `${label}: ${title(operation)}?`,
    text: `${effect} Instance ${operation.instanceName} (${operation.instanceId}).`,
    command: () => commands.about(operation, request),
    confirm: label,
    typed: request === "fail" ? operation.instanceName : undefined,
    act: () => {
      const body = request === "cancel" ? { cancelMode: "FORCEFUL" } : undefined;
      const path = `/vnflcm/${operation.api}/vnf_lcm_op_occs/${operation.id}/${request}`;
      return send("POST", path, body);
    },
  });
}
