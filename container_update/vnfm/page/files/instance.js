// Shows one VNF instance: what runs, its operation, the plan of a request, its history, its requests.

import { send } from "./api.js";
import * as commands from "./commands.js";
import { ask } from "./dialog.js";
import { requestForm } from "./form.js";
import { history } from "./history.js";
import { badge, operationPanel, updatePanel } from "./operations.js";
import { planner } from "./plan.js";
import { openPod } from "./pod.js";
import { showResources } from "./resources.js";
import { button, element, facts, head, keep, tabs } from "./view.js";

const path = ({ api, id }) => `/vnflcm/${api}/vnf_instances/${id}`;
const section = document.getElementById("instance");
const body = document.getElementById("instance-body");
/** What is made for the instance that is shown. */
let made = null;

/** instance: undefined where there is none; isRead: the service has answered. */
export function showInstance(instance, isRead, shown, attempt) {
  if (!instance) {
    made = null;
    head(section, isRead ? "There is no such instance (any more)." : "Reading", "", "");
    body.replaceChildren();
    return;
  }
  if (made?.id !== instance.id) make(instance, attempt);
  update(instance, shown);
}

/** Reads the history again: an operation may have begun and ended between two looks. */
export function reloadHistory() {
  made?.reload?.();
}

function make(instance, attempt) {
  const panel = operationPanel();
  const buttons = element("div", { class: "buttons" });
  const resources = element("div", { class: "resources" });
  const plan = element("div");
  const past = element("div");
  const details = element("div", { class: "facts" });
  const reload = history(past, instance.id, attempt);
  const planning = planner(plan, [instance], attempt, () => {
    tabbed.open("Resources");
    lookAtIt();
  });
  const tabbed = tabs("instance", {
    Resources: resources, Plan: plan, History: past, Details: details,
  }, (name) => { if (name === "History") reload(); });
  resources.addEventListener("click", ({ target }) => {
    if (target.dataset.pod) openPod(instance, target.dataset.pod);
  });
  body.replaceChildren(panel, buttons, tabbed.element);
  made = {
    id: instance.id, panel, buttons, resources, details, planning, tabbed, reload, operation: "",
  };
}

function update(instance, { steps, resources, running, packages, mayChange }) {
  const operation = running.get(instance.id);
  if (made.operation !== (operation?.id ?? "")) {
    made.operation = operation?.id ?? "";
    const fresh = operationPanel();
    made.panel.replaceWith(fresh);
    made.panel = fresh;
    made.reload();
  }
  head(section, instance.name, instance.package, ...badge(instance, operation));
  updatePanel(made.panel, operation, steps.get(operation?.id), resources.get(instance.id), mayChange);
  showResources(made.resources, resources.get(instance.id), steps.get(operation?.id)?.steps);
  facts(made.details, [
    ["Id", instance.id],
    ["API", instance.api],
    ["Description", instance.description],
    ["VNFD", instance.vnfdId],
    ["Namespace", instance.namespace],
    ["Stack", instance.stack],
    ...instance.aspects.map(({ id, level }) => [`Scale level of ${id}`, String(level)]),
    ...instance.vnfcs.map(({ vduId, resource }) => [vduId, resource]),
  ]);
  const isFree = mayChange && !operation;
  made.planning.update(instance, packages, isFree);
  made.acts = new Map(isFree ? actions(instance, made.planning, made.tabbed) : []);
  keep(made.buttons, [...made.acts.keys()], {
    key: (label) => label,
    make: (label) => button(label, () => made.acts.get(label)()),
    update: () => {},
  });
}

/** After a request: the operation that it began is at the top. */
function lookAtIt() {
  scrollTo(0, 0);
  document.getElementById("instance-title").focus();
}

function* actions(instance, planning, tabbed) {
  if (!instance.isInstantiated) {
    yield ["Instantiate", () => askInstantiation(instance)];
    yield ["Delete", () => askRemoval(instance)];
    return;
  }
  const plan = (operation) => () => {
    tabbed.open("Plan");
    planning.choose(operation);
  };
  yield ["Update", plan("MODIFY_INFO")];
  if (instance.api === "v2") yield ["Change package", plan("CHANGE_VNFPKG")];
  yield ["Heal", () => askHeal(instance)];
  if (instance.aspects.length) yield ["Scale", () => askScale(instance)];
  yield ["Terminate", () => askTermination(instance)];
}

const named = ({ name, id }) => `Instance ${name} (${id}).`;

async function askInstantiation(instance) {
  const draft = await send("GET",
    `/view/drafts/${instance.api}/${instance.id}?operation=INSTANTIATE`);
  const form = requestForm("instantiate", draft);
  ask({
    title: `Instantiate ${instance.name}?`,
    text: `What its package ${instance.package} describes is created in the VIM. ${named(instance)}`,
    form,
    command: () => commands.instantiate(instance, form.value()),
    confirm: "Instantiate",
    act: () => send("POST", `${path(instance)}/instantiate`, form.value()),
    then: lookAtIt,
  });
}

function askHeal(instance) {
  const body = ({ vnfc, cause }) => ({
    ...(vnfc ? { vnfcInstanceId: [vnfc] } : {}),
    ...(cause ? { cause } : {}),
  });
  ask({
    title: `Heal ${instance.name}?`,
    text: `One VNFC is replaced, or everything is brought to what the package says. ${named(instance)}`,
    fields: [
      {
        name: "vnfc",
        label: "What",
        options: [["", "The whole VNF"], ...instance.vnfcs.map(({ id, vduId, resource }) =>
          [id, `${vduId}: ${resource}`])],
      },
      { name: "cause", label: "Cause (optional)" },
    ],
    command: (values) => commands.heal(instance, body(values)),
    confirm: "Heal",
    act: (values) => send("POST", `${path(instance)}/heal`, body(values)),
    then: lookAtIt,
  });
}

function askScale(instance) {
  const body = ({ type, aspectId, numberOfSteps }) => ({ type, aspectId, numberOfSteps });
  ask({
    title: `Scale ${instance.name}?`,
    text: `VNFCs are added or removed. ${named(instance)}`,
    fields: [
      { name: "type", label: "Direction", options: [["SCALE_OUT", "Out"], ["SCALE_IN", "In"]] },
      {
        name: "aspectId",
        label: "Aspect",
        options: instance.aspects.map(({ id, level }) => [id, `${id}, at level ${level}`]),
      },
      { name: "numberOfSteps", label: "Steps", kind: "number", value: 1 },
    ],
    command: (values) => commands.scale(instance, body(values)),
    confirm: "Scale",
    act: (values) => send("POST", `${path(instance)}/scale`, body(values)),
    then: lookAtIt,
  });
}

function askTermination(instance) {
  ask({
    title: `Terminate ${instance.name}?`,
    text: `Everything that belongs to it is deleted from the VIM. This cannot be undone. ${named(instance)}`,
    command: () => commands.terminate(instance),
    confirm: "Terminate",
    act: () => send("POST", `${path(instance)}/terminate`, { terminationType: "FORCEFUL" }),
    then: lookAtIt,
  });
}

function askRemoval(instance) {
  ask({
    title: `Delete ${instance.name}?`,
    text: `Its record is deleted; its operations stay in the history. ${named(instance)}`,
    command: () => commands.remove(instance),
    confirm: "Delete",
    act: () => send("DELETE", path(instance)),
    then: () => { location.hash = "#/instances"; },
  });
}
