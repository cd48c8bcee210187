// The page: asks for a token where one is needed, then shows what the service tells it.

import { Refused, token, watch } from "./api.js";
import { history } from "./history.js";
import { showInstances } from "./instances.js";
import { isRunning, isUnsettled, showRunning, title } from "./operations.js";
import { acceptFiles, showPackages } from "./packages.js";
import { enterByLink } from "./session.js";
import { say } from "./view.js";

const SECTIONS = ["packages", "instances", "operations", "progress", "resources"];
const TICK_MS = 1000;
const at = (id) => document.getElementById(id);

/** By the name of the section and the id of the value. */
const known = Object.fromEntries(SECTIONS.map((name) => [name, new Map()]));
let user = { user: "", mayChange: false };
let stream = null;
let selected = "";

// --- what the service tells ----------------------------------------------------------------------

function connect() {
  stream?.stop();
  const fresh = new Set(SECTIONS);
  const path = `/view/events${selected ? `?instance=${selected}` : ""}`;
  stream = watch(path, (name, value) => heard(name, value, fresh), failed);
}

/** Takes an event; the first of each section after a connection replaces what was known. */
function heard(name, value, fresh) {
  if (name === "hello") {
    for (const section of SECTIONS) fresh.add(section);
    user = value;
    enter();
  } else if (name === "outage") {
    state(value, true);
  } else {
    take(known[name], value, fresh.delete(name));
    if (name === "operations") reload();
    show();
  }
}

function take(values, { changed, removed }, isFirst) {
  if (isFirst) {
    const ids = new Set(changed.map(({ id }) => id));
    for (const id of values.keys()) if (!ids.has(id)) values.delete(id);
  }
  for (const id of removed) values.delete(id);
  for (const value of changed) {
    const before = values.get(value.id);
    values.set(value.id, value);
    if (before?.state && before.state !== value.state) tell(value);
  }
}

function failed(error) {
  if (error.status === 401) ask(error);
  else state(error.message, true);
}

// --- showing -------------------------------------------------------------------------------------

const reload = history(at("history"), "", attempt);

function show() {
  const { packages, instances, operations, progress, resources } = known;
  const unsettled = [...operations.values()].filter(isUnsettled)
    .sort((one, other) => other.started.localeCompare(one.started));
  const running = new Map(unsettled.map((operation) => [operation.instanceId, operation]));
  const shown = {
    progress, resources, running, packages: newestFirst(packages), mayChange: user.mayChange,
  };
  showRunning(at("running"), unsettled, shown);
  showInstances(at("instances"), newestFirst(instances), shown, { select, attempt });
  showPackages(at("packages"), shown.packages, user.mayChange);
  at("drop").hidden = !user.mayChange;
}

const newestFirst = (values) =>
  [...values.values()].sort((one, other) => other.created.localeCompare(one.created));

function select(id, isOpen) {
  if (isOpen === (selected === id)) return;
  selected = isOpen ? id : "";
  connect();
}

const tell = (operation) => say(at("news"), `${title(operation)}: ${operation.state}`);

function state(text, isBad = false) {
  say(at("state"), text);
  at("state").classList.toggle("bad", isBad);
}

/** Runs a request; what refuses it is shown. */
async function attempt(action) {
  try {
    await action();
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    failed(error);
  }
}

// --- the token -----------------------------------------------------------------------------------

function enter() {
  at("entry").hidden = true;
  at("content").hidden = false;
  at("forget").hidden = !token.get();
  say(at("user"), user.mayChange ? user.user : `${user.user}, may only read`);
  state("Live");
}

/** Asks for a token; says why where one was refused. */
function ask(error) {
  say(at("entry-problem"), error.message);
  leave();
  state("A token is needed");
}

function leave() {
  stream?.stop();
  token.forget();
  for (const values of Object.values(known)) values.clear();
  selected = "";
  show();
  say(at("user"), "");
  at("content").hidden = true;
  at("forget").hidden = true;
  at("entry").hidden = false;
  at("token").focus();
}

at("entry").addEventListener("submit", (event) => {
  event.preventDefault();
  token.set(at("token").value.trim());
  at("token").value = "";
  connect();
});
at("forget").addEventListener("click", () => {
  leave();
  state("The token is forgotten");
});
acceptFiles(at("drop"), at("files"), at("upload"), () => user.mayChange);
setInterval(() => {
  if (selected || [...known.operations.values()].some(isRunning)) show();
}, TICK_MS);
await attempt(enterByLink);
if (at("entry").hidden) connect();
