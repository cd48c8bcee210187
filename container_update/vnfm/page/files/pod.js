// Shows what a pod reports: its last Events and the end of its containers' logs.

import { Refused, send, turns } from "./api.js";
import { age, element, say } from "./view.js";

const at = (name) => document.getElementById(`pod-${name}`);
const dialog = document.getElementById("pod");
const begin = turns();
let read = () => {};

/** Opens the dialog about a pod of an instance. */
export function openPod({ api, id }, name) {
  say(at("title"), name);
  at("body").replaceChildren(element("p", { class: "quiet" }, "Reading"));
  read = async () => {
    const isLatest = begin();
    let shown;
    try {
      shown = entries(await send("GET", `/view/pods/${api}/${id}/${encodeURIComponent(name)}`));
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      shown = [element("p", { class: "problem" }, error.message)];
    }
    if (isLatest()) at("body").replaceChildren(...shown);
  };
  dialog.showModal();
  read();
}

function entries({ events, logs }) {
  const none = (text) => element("p", { class: "quiet" }, text);
  return [
    element("h3", {}, "Events"),
    events.length ? element("ul", { class: "reasons" }, ...events.map(({ time, isWarning, text }) =>
      element("li", { class: isWarning ? "bad" : "" }, time ? `${age(time)} ago: ${text}` : text)))
      : none("There are none."),
    ...(logs.length ? [] : [element("h3", {}, "Log"), none("No container has run yet.")]),
    ...logs.flatMap(({ container, lines }) => [
      element("h3", {}, `Log of container ${container}`),
      lines.length ? element("pre", { class: "diff", tabindex: "0", role: "group", "aria-label": `Log of ${container}` },
        lines.join("\n")) : none("It is empty."),
    ]),
  ];
}

at("again").addEventListener("click", () => read());
at("close").addEventListener("click", () => dialog.close());
