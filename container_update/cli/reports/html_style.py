# SPDX-License-Identifier: Apache-2.0
"""How the HTML report looks: on a wide screen and a phone, light and dark, and on paper."""

STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif;
  --text: #1c2126; --page: #fff; --dim: #5c6670; --line: #d5dae0; --block: #f5f7f9;
  --green: #116b35; --red: #b3261e; --amber: #8a5a00; --blue: #0b6384;
  --green-back: #e3f5e8; --red-back: #fdeaea; }
@media screen and (prefers-color-scheme: dark) {
  :root { --text: #e4e8ec; --page: #15191d; --dim: #9aa5b0; --line: #363e46; --block: #1d2329;
    --green: #6fd08c; --red: #ff8a80; --amber: #e9b44c; --blue: #6cc4e8;
    --green-back: #12301d; --red-back: #3b1a1a; } }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: var(--text);
  background: var(--page); overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.25rem; margin-top: 2rem; } h3 { font-size: 1.05rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; margin: 0; }
dt, .key, .dim { color: var(--dim); } dd { margin: 0; }
.sum, .error { border-left: 4px solid var(--green); padding: .3rem 1rem; white-space: pre-line; }
.error { border-color: var(--red); }
.legend, .names { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: 0 1.5rem; }
.legend { color: var(--dim); font-size: .9rem; }
.step { border-top: 1px solid var(--line); padding: .6rem 0; break-inside: avoid; }
.step p, .step ul { margin: .2rem 0; }
.step > p:first-child { padding-left: 1.6rem; text-indent: -1.6rem; }
.step > :not(:first-child) { margin-left: 1.6rem; }
.reasons { padding-left: 1.2rem; }
.sign { display: inline-block; min-width: 1.3rem; text-indent: 0;
  font-family: ui-monospace, monospace; }
.create, .added { color: var(--green); } .delete, .removed, .failed { color: var(--red); }
.change { color: var(--amber); } .restart, .hunk { color: var(--blue); }
.failed { font-weight: 600; }
pre { background: var(--block); padding: .6rem .8rem; white-space: pre-wrap; font-size: .85rem; }
.diff { max-height: 30rem; overflow: auto; } .diff span { display: block; min-height: 1.5em; }
.added { background: var(--green-back); } .removed { background: var(--red-back); }
table { border-collapse: collapse; width: 100%; }
th, td { border-top: 1px solid var(--line); padding: .4rem .8rem .4rem 0; text-align: left;
  vertical-align: top; }
th { white-space: nowrap; }
td:last-child, th:last-child { text-align: right; padding-right: 0; }
@media (max-width: 40rem) {
  dl { display: block; } dd { margin-bottom: .4rem; }
  thead { display: none; } table, tbody, tr, td { display: block; }
  tr { border-top: 1px solid var(--line); padding: .5rem 0; }
  td, td:last-child { border: 0; padding: 0; text-align: left; } td:empty { display: none; }
  td:first-child { font-weight: 600; }
  td:not(:first-child):before { content: attr(data-label) ": "; color: var(--dim); }
  .names { display: block; } }
@media print {
  body { max-width: none; margin: 0; padding: 0; font-size: 10pt; }
  .diff { max-height: none; overflow: visible; } tr, pre { break-inside: avoid; } }
"""
