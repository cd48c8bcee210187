// The page: asks for a token where one is needed, then shows the view that its address names.
//
// #/instances?text=&condition=&vnfd_id=&page=, #/instances/ID, #/batch, #/packages, #/history

import { Refused, token, watch } from "./api.js";
import { showBatch } from "./batch.js";
import { history as past } from "./history.js";
import { reloadHistory, showInstance } from "./instance.js";
import { followTable, showTable } from "./instances.js";
import { isRunning, isUnsettled, title, word } from "./operations.js";
import { acceptFiles, packageTable } from "./packages.js";
import { enterByLink } from "./session.js";
import { say } from "./view.js";

const SECTIONS = [
  "packages", "table", "instances", "operations", "progress", "steps", "resources",
];
const VIEWS = ["instances", "instance", "batch", "packages", "history"];
const TICK_MS = 1000;
const at = (id) => document.getElementById(id);

/** By the name of the section and the id of the value. */
const known = Object.fromEntries(SECTIONS.map((name) => [name, new Map()]));
let user = { user: "", mayChange: false };
let stream = null;
/** What the address says: the view, the id of the instance that is open, the table's query. */
let place = { view: "instances", instance: "", query: "" };

// --- what the service tells ----------------------------------------------------------------------

function connect() {
  stream?.stop();
  const fresh = new Set(SECTIONS);
  const query = new URLSearchParams(place.query);
  if (place.instance) query.set("instance", place.instance);
  stream = watch(`/view/events?${query}`, (name, value) => heard(name, value, fresh), failed);
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
    if (name === "operations" && place.view === "history") reload();
    if (name === "operations" && place.view === "instance") reloadHistory();
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

// --- the address ---------------------------------------------------------------------------------

/** Shows the view that the address names. */
function follow() {
  const [path, query = ""] = location.hash.slice(2).split("?");
  const [name, id = ""] = path.split("/");
  const before = place;
  const view = name === "instances" && id ? "instance" : name;
  place = {
    view: VIEWS.includes(view) ? view : "instances",
    instance: id,
    query: view === "instances" ? query : before.query,
  };
  if (place.view === "instances") followTable(place.query);
  at("to-instances").href = `#/instances${place.query && `?${place.query}`}`;
  if (place.view === "history") reload();
  if (stream && (before.instance !== place.instance || before.query !== place.query)) connect();
  show();
  if (before.view !== place.view || before.instance !== place.instance) {
    scrollTo(0, 0);
    at(`${place.view}-title`).focus();
  }
}

// --- showing -------------------------------------------------------------------------------------

const reload = past(at("history").lastElementChild, "", attempt, () => user.mayChange);

const showPackages = packageTable(at("packages"));

function show() {
  for (const view of VIEWS) at(view).hidden = view !== place.view;
  for (const link of document.querySelectorAll(".views a")) {
    const isHere = link.getAttribute("href") === `#/${place.view}`;
    link.toggleAttribute("aria-current", isHere);
    if (isHere) link.setAttribute("aria-current", "page");
  }
  const { packages, instances, operations } = known;
  const unsettled = [...operations.values()].filter(isUnsettled);
  const shown = {
    ...known,
    running: new Map(unsettled.map((operation) => [operation.instanceId, operation])),
    packages: newestFirst(packages),
    mayChange: user.mayChange,
  };
  if (place.view === "instances") showTable(known.table.get("table"), shown);
  if (place.view === "instance") {
    const isRead = known.instances.size > 0 || known.table.size > 0;
    showInstance(instances.get(place.instance), isRead, shown, attempt);
  }
  if (place.view === "batch") showBatch(shown, attempt);
  showPackages(shown.packages, user.mayChange);
  at("drop").hidden = !user.mayChange;
  document.title = `${at(`${place.view}-title`).textContent} · container-update`;
}

const newestFirst = (values) =>
  [...values.values()].sort((one, other) => other.created.localeCompare(one.created));

const tell = (operation) => say(at("news"), `${title(operation)}: ${word(operation.state)}`);

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
  stream = null;
  token.forget();
  for (const values of Object.values(known)) values.clear();
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
  state("Signed out");
});
acceptFiles(at("drop"), at("files"), at("upload"), () => user.mayChange);
addEventListener("hashchange", follow);
setInterval(() => {
  if (place.instance || [...known.operations.values()].some(isRunning)) show();
}, TICK_MS);
await attempt(enterByLink);
follow();
if (at("entry").hidden) connect();
