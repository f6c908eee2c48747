"use strict";
// Keeps parts of the page current. Without scripts, reloading the page does the same.
(function () {
  const root = document.querySelector("[data-events]");
  const status = document.getElementById("status");

  // What a reader holds must not slip away: the place of the keyboard, and what was opened.
  function replace(place, html) {
    const held = place.contains(document.activeElement) ? document.activeElement.id : "";
    const open = [...place.querySelectorAll("details[open]")].map((one) => one.id);
    place.innerHTML = html;
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    if (held) document.getElementById(held)?.focus({ preventScroll: true });
  }

  function count(name) {
    return document.querySelectorAll("#live-" + name + " article").length;
  }

  function say(before) {
    const [waits, runs, over] = ["waiting", "active", "ended"].map(count);
    if (before !== null && [waits, runs, over].join() !== before.join()) {
      status.textContent = waits + " waiting for your answer, " + runs + " running, " + over + " ended.";
    }
    document.title = (waits ? "(" + waits + ") " : "") + "Dashboard – Atoll";
    return [waits, runs, over];
  }

  let counted = say(null);
  const source = new EventSource(root.dataset.events);
  source.addEventListener("parts", (event) => {
    const parts = JSON.parse(event.data);
    for (const [name, html] of Object.entries(parts)) replace(document.getElementById("live-" + name), html);
    counted = say(counted);
    document.documentElement.dataset.live = "yes";
  });
  source.addEventListener("error", () => {
    status.textContent = "The dashboard does not answer. It was stopped, or is being started again.";
  });
  source.addEventListener("open", () => { status.textContent = ""; });
})();
