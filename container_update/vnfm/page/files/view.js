// Makes elements and keeps them up to date. What is data only ever becomes text.

const CLOCK = {
  hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23", timeZoneName: "short",
};

/** An element: attributes, then children, which are elements or texts. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** Gives an element a text, where it has another one. */
export function say(target, text) {
  if (target.textContent !== text) target.textContent = text;
}

/** Gives an element one of the classes that tell how things are. */
export function tone(target, name) {
  for (const each of ["good", "busy", "bad"]) target.classList.toggle(each, each === name);
}

/**
 * Makes the children of `target` those of `items`: what stays keeps its element, and with it the
 * focus. Children without a key are not touched.
 *
 * key(item) names it, make(item) gives a new element, update(element, item) shows how it is now.
 */
export function keep(target, items, { key, make, update }) {
  const made = [...target.children].filter(({ dataset }) => "key" in dataset);
  const known = new Map(made.map((child) => [child.dataset.key, child]));
  const wanted = new Set(items.map(key));
  for (const [name, child] of known) if (!wanted.has(name)) child.remove();
  let place = made.find((child) => child.parentNode) ?? null;
  for (const item of items) {
    const name = key(item);
    const child = known.get(name) ?? make(item);
    child.dataset.key = name;
    update(child, item);
    if (child === place) place = child.nextElementSibling;
    else target.insertBefore(child, place);
  }
}

/** Makes the children of an element anew, where what they are made of has changed. */
export function fill(target, from, make) {
  const text = JSON.stringify(from);
  if (target.dataset.shown === text) return;
  target.dataset.shown = text;
  target.replaceChildren(...make());
}

/** What a view or a card says at its top. */
export function head(card, name, remark, state, how) {
  say(card.querySelector(".name"), name);
  say(card.querySelector(".remark"), remark);
  const badge = card.querySelector(".badge");
  say(badge, state);
  tone(badge, how);
}

/** Names and values, as a definition list; those without a value are left out. */
export function facts(target, pairs) {
  const shown = pairs.filter(([, value]) => value);
  fill(target, shown, () => [element("dl", {}, ...shown.flatMap(([name, value]) =>
    [element("dt", {}, name), element("dd", {}, value)]))]);
}

/** Seconds as people say them. */
export function duration(seconds) {
  if (seconds < 10 && !Number.isInteger(seconds)) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} days`;
}

/** How long ago a moment is, in whole seconds. */
export const age = (text) => duration(Math.max(0, Math.floor((Date.now() - new Date(text)) / 1000)));

/** A moment with its zone, and its date where that is not today's, and how long ago it is. */
export function moment(text) {
  const when = new Date(text);
  const isToday = when.toDateString() === new Date().toDateString();
  const date = isToday ? {} : { year: "numeric", month: "short", day: "numeric" };
  return `${when.toLocaleString(undefined, { ...date, ...CLOCK })}, ${age(text)} ago`;
}

/** A button; kind: "main" for what to do next, "danger" for what cannot be undone. */
export function button(label, act, kind = "") {
  const made = element("button", { type: "button", class: kind }, label);
  made.addEventListener("click", act);
  return made;
}

/**
 * Tabs, the first of which is open: {element, open(name)}.
 *
 * panels: {name: element}; opened(name) is called when one is opened.
 */
export function tabs(prefix, panels, opened) {
  const names = Object.keys(panels);
  const id = (kind, name) => `${prefix}-${kind}-${name.toLowerCase()}`;
  const list = element("div", { class: "tabs", role: "tablist" });
  const open = (name) => {
    for (const each of names) {
      const tab = list.children[names.indexOf(each)];
      tab.setAttribute("aria-selected", String(each === name));
      tab.tabIndex = each === name ? 0 : -1;
      panels[each].hidden = each !== name;
    }
    opened(name);
  };
  for (const name of names) {
    const tab = button(name, () => open(name));
    tab.id = id("tab", name);
    tab.setAttribute("role", "tab");
    tab.setAttribute("aria-controls", id("panel", name));
    list.append(tab);
    panels[name].id = id("panel", name);
    panels[name].setAttribute("role", "tabpanel");
    panels[name].setAttribute("aria-labelledby", tab.id);
  }
  list.addEventListener("keydown", (event) => {
    const move = { ArrowRight: 1, ArrowLeft: names.length - 1 }[event.key];
    if (!move) return;
    const next = list.children[([...list.children].indexOf(event.target) + move) % names.length];
    next.focus();
    next.click();
  });
  open(names[0]);
  return { element: element("div", {}, list, ...Object.values(panels)), open };
}
