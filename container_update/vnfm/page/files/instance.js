// Shows one VNF instance: what runs, its operation, the plan of a request, its history, its requests.

import { send } from "./api.js";
import * as commands from "./commands.js";
import { ask, because, WHY } from "./dialog.js";
import { requestForm } from "./form.js";
import { history } from "./history.js";
import { objectTable } from "./objects.js";
import { badge, operationPanel, updatePanel } from "./operations.js";
import { planner } from "./plan.js";
import { openPod } from "./pod.js";
import { button, element, facts, fill, head, moment, say, tabs } from "./view.js";

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
  const place = element("p", { class: "quiet" });
  const objects = objectTable("Resources", true);
  const resources = element("div", { class: "resources" }, place, objects.element);
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
    id: instance.id, panel, buttons, place, objects, details, planning, tabbed, reload, operation: "",
  };
}

function update(instance, { steps, progress, resources, running, packages, mayChange }) {
  const operation = running.get(instance.id);
  if (made.operation !== (operation?.id ?? "")) {
    made.operation = operation?.id ?? "";
    const fresh = operationPanel();
    made.panel.replaceWith(fresh);
    made.panel = fresh;
    made.reload();
  }
  head(section, instance.name, instance.package, ...badge(instance, operation));
  const found = resources.get(instance.id);
  const ofIt = { progress: progress.get(operation?.id), steps: steps.get(operation?.id) };
  updatePanel(made.panel, operation, { ...ofIt, resources: found, mayChange });
  say(made.place, placeOf(found));
  made.place.classList.toggle("problem", Boolean(found?.problem));
  made.objects.show(ofIt.steps, found);
  facts(made.details, [
    ["Id", instance.id],
    ["Created", moment(instance.created)],
    ["Last change", moment(instance.since)],
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
  const acts = isFree ? [...actions(instance, made.planning, made.tabbed)] : [];
  made.acts = Object.fromEntries(acts);
  fill(made.buttons, acts, () => acts.map(([label, , kind]) =>
    button(label, () => made.acts[label](), kind)));
}

function placeOf(found) {
  if (!found) return "Reading";
  if (found.problem) return found.problem;
  if (!found.vdus.length) return "Nothing runs.";
  return found.namespace ? `Namespace ${found.namespace}` : `Stack ${found.stack ?? ""}`;
}

/** After a request: the operation that it began is at the top. */
function lookAtIt() {
  scrollTo(0, 0);
  document.getElementById("instance-title").focus();
}

function* actions(instance, planning, tabbed) {
  if (!instance.isInstantiated) {
    yield ["Instantiate", () => askInstantiation(instance), "main"];
    yield ["Delete", () => askRemoval(instance), "danger"];
    return;
  }
  const plan = (operation) => () => {
    tabbed.open("Plan");
    planning.choose(operation);
  };
  const heal = ["Heal", () => askHeal(instance)];
  if (instance.trouble) yield [...heal, "main"];
  yield ["Update", plan("MODIFY_INFO"), ...(instance.trouble ? [] : ["main"])];
  if (instance.api === "v2") yield ["Change package", plan("CHANGE_VNFPKG")];
  if (!instance.trouble) yield heal;
  if (instance.aspects.length) yield ["Scale", () => askScale(instance)];
  yield ["Terminate", () => askTermination(instance), "danger"];
}

const named = ({ name, id }) => `Instance ${name} (${id}).`;

async function askInstantiation(instance) {
  const draft = await send("GET",
    `/view/drafts/${instance.api}/${instance.id}?operation=INSTANTIATE`);
  const form = requestForm("instantiate", draft);
  const namespace = draft.additionalParams?.namespace;
  const own = namespace && namespace !== "default" ? " Another instance of this product runs in the "
    + `namespace default: this one gets ${namespace}, which has to exist.` : "";
  ask({
    title: `Instantiate ${instance.name}?`,
    text: `The objects of its package ${instance.package} are created in the VIM.${own} ${named(instance)}`,
    form,
    fields: [WHY],
    command: () => commands.instantiate(instance, form.value()),
    confirm: "Instantiate",
    act: (values) => send("POST", because(`${path(instance)}/instantiate`, values), form.value()),
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
    text: `One VNFC is replaced, or all objects are restored as in the package. ${named(instance)}`,
    fields: [
      {
        name: "vnfc",
        label: "What",
        options: [["", "The whole VNF"], ...instance.vnfcs.map(({ id, vduId, resource }) =>
          [id, `${vduId}: ${resource}`])],
      },
      { ...WHY, name: "cause" },
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
      WHY,
    ],
    command: (values) => commands.scale(instance, body(values)),
    confirm: "Scale",
    act: (values) => send("POST", because(`${path(instance)}/scale`, values), body(values)),
    then: lookAtIt,
  });
}

function askTermination(instance) {
  ask({
    title: `Terminate ${instance.name}?`,
    text: `Everything that belongs to it is deleted from the VIM. This cannot be undone. ${named(instance)}`,
    fields: [WHY],
    command: () => commands.terminate(instance),
    confirm: "Terminate",
    typed: instance.name,
    act: (values) => send("POST", because(`${path(instance)}/terminate`, values), { terminationType: "FORCEFUL" }),
    then: lookAtIt,
  });
}

function askRemoval(instance) {
  ask({
    title: `Delete ${instance.name}?`,
    text: `Its record is deleted; its operations stay in the history. ${named(instance)}`,
    command: () => commands.remove(instance),
    confirm: "Delete",
    typed: instance.name,
    act: () => send("DELETE", path(instance)),
    then: () => { location.hash = "#/instances"; },
  });
}
