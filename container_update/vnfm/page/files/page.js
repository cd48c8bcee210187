// The page: asks for a token where one is needed, then looks again and again at what there is.
// What runs is read every second, the rest when an operation came into another state.

import { list, read, Refused, token } from "./api.js";
import { isRunning, isUnsettled, showHistory, showRunning, title } from "./operations.js";
import { facts, foldable, head, keep, say } from "./view.js";

const APIS = ["v1", "v2"];
const BUSY_MS = 1000;
const IDLE_MS = 4000;
const REST_MS = 20000;
const SHOWN = 50;
const at = (id) => document.getElementById(id);

const operations = new Map();
let instances = new Map();
let packages = [];
let restRead = 0;
let timer = 0;

// --- reading -------------------------------------------------------------------------------------

/** From where on operations may have changed: the first that is unsettled, or the last one. */
function since(api) {
  const times = (wanted) => [...operations.values()]
    .filter((operation) => operation.api === api && wanted(operation))
    .map((operation) => operation.startTime).sort();
  return times(isUnsettled)[0] ?? times(() => true).at(-1);
}

async function readOperations(api) {
  const from = since(api);
  const filter = from ? `&filter=(gte,startTime,${encodeURIComponent(from)})` : "";
  const path = `/vnflcm/${api}/vnf_lcm_op_occs`;
  const hidden = "exclude_fields=operationParams,resourceChanges,changedInfo";
  let changed = false;
  for (const found of await list(`${path}?${hidden}${filter}`)) {
    const known = operations.get(found.id);
    const isNew = known?.operationState !== found.operationState;
    changed ||= isNew;
    const operation = { ...found, api, steps: known?.steps, remarks: known?.remarks };
    operations.set(found.id, operation);
    if (isRunning(found) || (isNew && (known || isUnsettled(found)))) await readSteps(operation);
    if (known && isNew) tell(operation);
  }
  return changed;
}

async function readSteps(operation) {
  const path = `/vnflcm/${operation.api}/vnf_lcm_op_occs/${operation.id}/progress`;
  const progress = await read(path);
  operation.steps = progress.steps;
  operation.remarks = progress.remarks;
}

async function readRest() {
  const both = await Promise.all(APIS.map(async (api) =>
    (await list(`/vnflcm/${api}/vnf_instances?all_fields`)).map((found) => ({ ...found, api }))));
  instances = new Map(both.flat().map((found) => [found.id, found]));
  packages = await list("/vnfpkgm/v1/vnf_packages");
  restRead = Date.now();
}

async function load(id) {
  const operation = operations.get(id);
  if (operation.steps) return;
  await attempt(async () => {
    await readSteps(operation);
    show();
  });
}

// --- showing -------------------------------------------------------------------------------------

function show() {
  const byStart = (one, other) => other.startTime.localeCompare(one.startTime);
  const all = [...operations.values()].sort(byStart);
  showRunning(at("running"), all.filter(isUnsettled), instances);
  const ended = all.filter((operation) => !isUnsettled(operation));
  showHistory(at("history"), ended.slice(0, SHOWN), instances, load);
  showInstances();
  showPackages();
}

function showInstances() {
  keep(at("instances"), [...instances.values()], {
    key: ({ id }) => id,
    make: foldable,
    none: "There is no VNF instance.",
    update: (card, found) => {
      const on = found.instantiationState === "INSTANTIATED";
      const what = [found.vnfProductName, found.vnfSoftwareVersion].filter(Boolean).join(" ");
      head(card, found.vnfInstanceName || found.id, what, found.instantiationState, on && "good");
      const members = found.instantiatedVnfInfo?.vnfcResourceInfo ?? [];
      facts(card.querySelector(".body"), [
        ["Id", found.id],
        ["API", found.api],
        ["Description", found.vnfInstanceDescription],
        ["VNFD", found.vnfdId],
        ["VNFD version", found.vnfdVersion],
        ["Stack", found.instantiatedVnfInfo?.instance_id],
        ...members.map((vnfc) => [vnfc.vduId, vnfc.computeResource?.resourceId ?? vnfc.id]),
      ]);
    },
  });
}

function showPackages() {
  const HOW = { ONBOARDED: "good", UPLOADING: "busy", PROCESSING: "busy", ERROR: "bad" };
  keep(at("packages"), packages, {
    key: ({ id }) => id,
    make: foldable,
    none: "There is no VNF package.",
    update: (card, found) => {
      const name = [found.vnfProductName, found.vnfSoftwareVersion].filter(Boolean).join(" ");
      const remark = found.usageState === "IN_USE" ? "in use" : "not in use";
      head(card, name || found.vnfdId || found.id, remark, found.onboardingState, HOW[found.onboardingState]);
      facts(card.querySelector(".body"), [
        ["Id", found.id],
        ["VNFD", found.vnfdId],
        ["VNFD version", found.vnfdVersion],
        ["Provider", found.vnfProvider],
        ["Operational state", found.operationalState],
      ]);
    },
  });
}

function tell(operation) {
  at("news").textContent = `${title(operation, instances)}: ${operation.operationState}`;
}

// --- going on ------------------------------------------------------------------------------------

/** Whether it worked; what refuses it is shown. */
async function attempt(action) {
  try {
    await action();
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    if (error.status === 401) ask(error);
    else state(error.message, true);
    return error.status !== 401;
  }
  return true;
}

function state(text, isBad = false) {
  say(at("state"), text);
  at("state").classList.toggle("bad", isBad);
}

async function look() {
  clearTimeout(timer);
  const goOn = document.hidden || await attempt(async () => {
    const changed = await Promise.all(APIS.map(readOperations));
    if (changed.some(Boolean) || Date.now() - restRead > REST_MS) await readRest();
    at("entry").hidden = true;
    at("content").hidden = false;
    at("forget").hidden = !token.get();
    show();
    state(`As of ${new Date().toLocaleTimeString()}`);
  });
  const busy = [...operations.values()].some(isRunning);
  clearTimeout(timer);
  if (goOn) timer = setTimeout(look, busy ? BUSY_MS : IDLE_MS);
}

/** Asks for a token; says why where one was given already. */
function ask(error) {
  say(at("entry-problem"), token.get() ? error.message : "");
  leave();
  state("A token is needed");
}

function leave() {
  clearTimeout(timer);
  token.forget();
  operations.clear();
  instances = new Map();
  packages = [];
  restRead = 0;
  show();
  at("content").hidden = true;
  at("forget").hidden = true;
  at("entry").hidden = false;
  at("token").focus();
}

at("entry").addEventListener("submit", (event) => {
  event.preventDefault();
  token.set(at("token").value.trim());
  at("token").value = "";
  look();
});
at("forget").addEventListener("click", () => {
  leave();
  state("The token is forgotten");
});
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && at("entry").hidden) look();
});
look();
