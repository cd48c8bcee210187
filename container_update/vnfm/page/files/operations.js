// Shows the operation of an instance that runs or waits for a decision, and the requests about it.

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
const UNDONE = "Everything is as before already: the operation ends as ROLLED_BACK.";
const REQUESTS = {
  retry: ["Retry", "The operation goes on where it stopped."],
  rollback: ["Roll back", "What the operation changed is undone."],
  fail: ["Give up", "Nothing is done any more: everything stays as it is now, and the instance is "
    + "free for another operation. This cannot be undone."],
  cancel: ["Cancel operation", "What has not begun will not begin; what has begun stops, and what it "
    + "changed is undone."],
  promote: ["Promote", "The operation goes on: the new version takes over."],
  abort: ["Abort", "The operation goes back: the old version stays."],
};

/** Whether the service works at it, or should. */
export const isRunning = ({ state }) => RUNNING.has(state);

/** Whether it runs, or waits for a person's decision. */
export const isUnsettled = (operation) => isRunning(operation) || operation.state === "FAILED_TEMP";

/** An operation in words, with the name that the instance had then. */
export const title = ({ operation, instanceName }) =>
  `${NAMES[operation] ?? operation} ${instanceName}`;

/** What went wrong; the buttons' names stand for the requests that the REST API has. */
export const problemOf = ({ api, id, problem }) => Object.entries(REQUESTS).reduce(
  (text, [request, [label]]) =>
    text.replaceAll(`POST /vnflcm/${api}/vnf_lcm_op_occs/${id}/${request}`, label),
  problem);

/** From which package to which. */
export const way = ({ oldPackage, newPackage }) =>
  (newPackage && newPackage !== oldPackage ? `${oldPackage} \u2192 ${newPackage}` : oldPackage);

/** Whether it waits for a person. */
const needsDecision = ({ requests }) => requests.some((request) => request !== "cancel");

/** What is true of an instance now, as [text, tone]. */
export function badge({ isInstantiated }, operation) {
  if (!operation) return isInstantiated ? ["INSTANTIATED", "good"] : ["NOT_INSTANTIATED", ""];
  const { operation: kind, state } = operation;
  const word = state === "PROCESSING" && needsDecision(operation) ? "waits for you" : WORDS[state];
  return [`${NOUNS[kind] ?? kind} ${word}`, needsDecision(operation) ? "bad" : "busy"];
}

export function operationPanel() {
  return element("div", { class: "card", role: "region", "aria-label": "Operation" },
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

/** progress: its steps, undefined where they are not known; resources: those of the instance. */
export function updatePanel(card, operation, progress, resources, mayChange) {
  card.hidden = !operation;
  if (!operation) return;
  const { state, started, entered } = operation;
  const lasts = Math.max(0, (Date.now() - new Date(started)) / 1000);
  const remark = `since ${moment(started)}, ${state === "FAILED_TEMP"
    ? `failed ${moment(entered)}` : duration(lasts)}`;
  head(card, title(operation), remark, state, TONES[state]);
  say(card.querySelector(".way"), way(operation));
  const { steps = [], remarks = [], done = 0, total = 0 } = progress ?? {};
  const bar = card.querySelector("progress");
  bar.hidden = !total || state === "FAILED_TEMP";
  bar.max = total || 1;
  bar.value = done;
  say(card.querySelector(".count"), !bar.hidden ? `${done} of ${total} steps done` : "");
  say(card.querySelector(".cause"), problemOf(operation));
  showBroken(card.querySelector(".broken"), broken(resources));
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
  const [label, does] = REQUESTS[request];
  const effect = request === "rollback" && operation.isUndone ? UNDONE : does;
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
