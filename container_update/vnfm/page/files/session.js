// Signs in by a link: its one-time token, behind #once=, is exchanged for a session token.

import { Refused, token } from "./api.js";

const MARK = "#once=";

/** Uses the link that the page was opened by, if it was; in a tab that has a token, that one stays. */
export async function enterByLink() {
  if (!location.hash.startsWith(MARK)) return;
  const once = location.hash.slice(MARK.length);
  history.replaceState(null, "", location.pathname + location.search);
  const answer = await fetch("/page/session", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ once }),
    credentials: "omit",
  }).catch(() => null);
  const body = await answer?.json().catch(() => null);
  if (body?.token) token.set(body.token);
  else if (!token.get()) throw new Refused(401, body?.detail ?? "The service does not answer");
}
