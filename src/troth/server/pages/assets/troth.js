// Keep a page fresh, and let a keyboard do everything. Without this script all pages can be read, and their buttons work.
"use strict";
(() => {
  const body = document.body, root = body.dataset.root || "./";
  const find = (selector) => document.querySelector(selector);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];

  // ---- Times: how long ago, and the exact moment in the reader's own zone
  const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
  const ofToday = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
  const span = (seconds) => {
    const s = Math.floor(seconds);
    return s < 120 ? `${s} s` : s < 7200 ? `${Math.round(s / 60)} min` : s < 172800 ? `${Math.round(s / 3600)} h` : `${Math.round(s / 86400)} d`;
  };
  const showTimes = (isWhole = false) => {
    const today = new Date().toDateString();
    for (const time of all("time[datetime]")) {
      const at = Date.parse(time.dateTime), away = (Date.now() - at) / 1000;
      const [ago, moment] = time.children;
      if (!ago || !moment) continue;
      const words = Math.abs(away) < 1 ? "now" : away > 0 ? `${span(away)} ago` : `in ${span(-away)}`;
      if (ago.textContent !== words) ago.textContent = words;
      const full = (!isWhole && new Date(at).toDateString() === today ? ofToday : exact).format(at);
      if (moment.textContent !== full) { moment.textContent = full; time.title = exact.format(at); }
    }
  };
  setInterval(() => { if (!document.hidden) showTimes(); }, 1000);
  addEventListener("beforeprint", () => showTimes(true));  // on paper nobody knows what day it was
  addEventListener("afterprint", () => showTimes());

  // ---- Lists hold still while somebody is in them: what is new is announced, and shown when asked for
  let showNew = false;
  const isRead = (list) => {
    const selection = document.getSelection();
    const isSelected = selection && !selection.isCollapsed && list.contains(selection.anchorNode);
    return isSelected || list.matches(":hover") || list.contains(document.activeElement) || list.querySelector(".current") ||
      (scrollY > 0 && list.getBoundingClientRect().top < 0);
  };
  const hold = (fragment) => {
    for (const list of all("[data-list]")) {
      const fresh = fragment.querySelector(`#${CSS.escape(list.id)}`);
      if (!fresh || showNew || !isRead(list)) continue;
      const known = new Set([...list.children].map((row) => row.id));
      const added = [...fresh.children].filter((row) => !known.has(row.id));
      added.forEach((row) => row.remove());
      const staying = new Map([...fresh.children].map((row) => [row.id, row]));
      const kept = [...list.children].map((row) => staying.get(row.id) || row.cloneNode(true));
      fresh.replaceChildren(...kept);
      for (const row of kept) if (row.classList) row.classList.toggle("current", row.id === find(".row.current")?.id);
      const news = fragment.querySelector(`.news[data-for="${CSS.escape(list.id)}"]`);
      if (news && added.length) {
        const button = document.createElement("button");
        button.type = "button";
        button.dataset.showNew = "";
        button.textContent = `${added.length} new: show`;
        news.replaceChildren(button);
      }
    }
    showNew = false;
  };

  // ---- What one reads stays where it is on the screen, whatever comes or goes above it
  const main = find("main");
  let anchor = null, anchorTop = 0;
  const anchorHere = () => {
    const selection = document.getSelection();
    const selected = selection && !selection.isCollapsed ? selection.anchorNode?.parentElement : null;
    const parts = ":is(.row, tr, li, form, .panel, pre, p, h2)";
    const middle = scrollY ? document.elementFromPoint(innerWidth / 2, innerHeight / 3)?.closest(`main ${parts}`) : null;
    const places = [document.activeElement, selected, find(".row.current"), ...all(`main ${parts}:hover`).reverse(), middle];
    return places.find((place) => place && place !== main && main.contains(place)) || null;
  };
  const dropAnchor = () => { anchor = anchorHere(); anchorTop = anchor ? anchor.getBoundingClientRect().top : 0; };
  const keepAnchor = () => {
    if (!anchor?.isConnected) return;
    const moved = () => anchor.getBoundingClientRect().top - anchorTop;
    if (Math.abs(moved()) >= 1) scrollBy({ top: moved(), behavior: "instant" });
    if (moved() >= 1) {  // the page is too short to be scrolled so far
      const short = Math.max(0, innerHeight + scrollY - body.offsetHeight) + moved();
      main.style.paddingBottom = `${Math.ceil(parseFloat(getComputedStyle(main).paddingBottom) + short)}px`;
      scrollBy({ top: moved(), behavior: "instant" });
    }
  };

  // ---- Look again: the page is asked for anew, and what differs is changed in place
  let isLooking = false, isStale = false, lookedAt = 0, took = 0, sent = "";
  const canUnpack = "DecompressionStream" in window;
  const unpacked = (packed) => {  // a page that came with the news is shown as if it had been asked for
    const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")), { headers: { "Content-Type": "text/html" } });
  };
  const look = async () => {
    isStale = true;
    if (isLooking || document.hidden) return;
    isLooking = true;
    while (isStale && !document.hidden) {
      isStale = false;
      const rest = lookedAt + Math.max(sent ? 0 : 400, took * 4) - Date.now();
      if (rest > 0) await new Promise((resume) => setTimeout(resume, rest));
      isStale = false;
      const began = lookedAt = Date.now();
      const packed = sent;
      sent = "";
      const fetched = packed ? { fetch: async () => unpacked(packed) } : {};
      try {
        await htmx.ajax("GET", location.pathname + location.search, { target: "#content", select: "#content", swap: "outerMorph", ...fetched });
      } catch { break; }
      took = Date.now() - began;
    }
    isLooking = false;
  };
  document.addEventListener("htmx:before:swap", (event) => {
    const status = event.detail.ctx?.response?.raw?.status ?? event.detail.ctx?.response?.status;
    if (status === 401) { event.preventDefault(); location.reload(); return; }
    for (const task of event.detail.tasks || []) if (task.fragment) hold(task.fragment);
    dropAnchor();
  });
  document.addEventListener("htmx:after:swap", () => { showTimes(); follow(); keepAnchor(); });
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-show-new]")) { showNew = true; find(".row.current")?.classList.remove("current"); lookedAt = 0; look(); }
  });

  // ---- The stream: says that something has changed; what, the page asks for itself
  let source = null, last = "", awaySince = 0, retry = 500, timer = 0, leaving = 0;
  const stands = () => awaySince ? `no connection since ${new Date(awaySince).toLocaleTimeString()}; what you see may be old` : "live";
  const say = (text) => { const place = find("#liveness"); if (place && place.textContent !== text) place.textContent = text; };
  const isHere = () => {
    const was = awaySince;
    awaySince = 0; retry = 500;
    body.classList.add("is-live"); body.classList.remove("is-away");
    say(stands());
    if (was) lookedAt = 0;
  };
  const isAway = () => {
    if (!awaySince) awaySince = Date.now();
    body.classList.remove("is-live"); body.classList.add("is-away");
    say(stands());
  };
  const news = (event) => {
    if (event.lastEventId) last = event.lastEventId;
    let have = "";
    try { ({ have, page: sent = "" } = JSON.parse(event.data)); } catch { /* a gap says nothing of what there is */ }
    if (!have || have !== find("#content").dataset.have || isLooking) look();
  };
  const connect = () => {
    clearTimeout(timer);
    if (!body.dataset.live || (source && source.readyState === EventSource.OPEN)) return;
    source?.close();
    const after = last ? `&after=${last}` : "";
    const here = location.pathname.slice(new URL(root, location.href).pathname.length) + location.search;
    const along = canUnpack && body.dataset.live === "on=all" ? `&page=${encodeURIComponent(here)}` : "";
    const stream = source = new EventSource(`${root}live?${body.dataset.live}${after}${along}`);
    stream.onopen = isHere;
    stream.onerror = () => {
      stream.close();
      isAway();
      timer = setTimeout(connect, retry);
      retry = Math.min(retry * 1.6, 5000);
    };
    for (const kind of ["changed", "gap", "slow"]) stream.addEventListener(kind, news);
    stream.addEventListener("closing", () => { stream.close(); isAway(); timer = setTimeout(connect, retry); });
  };
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {  // a tab that nobody has looked at for a minute costs nothing; it goes on from its last number
      clearTimeout(leaving);
      leaving = setTimeout(() => { if (document.hidden) source?.close(); }, 60000);
      return;
    }
    retry = 500;
    if (!source || source.readyState !== EventSource.OPEN) connect();
    if (isStale) look();
  });
  addEventListener("online", () => { retry = 500; connect(); });
  addEventListener("pagehide", () => source?.close());
  addEventListener("pageshow", (event) => { if (event.persisted) connect(); });

  // ---- What grows at its end is followed, unless somebody has scrolled away from there
  const follow = () => { for (const box of all("[data-follow]")) if (!box.dataset.held) box.scrollTop = box.scrollHeight; };
  document.addEventListener("scroll", (event) => {
    const box = event.target;
    if (!box.dataset || box.dataset.follow === undefined) return;
    if (box.scrollHeight - box.scrollTop - box.clientHeight > 8) box.dataset.held = "1"; else delete box.dataset.held;
  }, true);

  // ---- Copying: one key for the id, the command, the error
  const copy = async (text, what) => {
    const told = (words) => { say(words); setTimeout(() => { if (body.dataset.live) say(stands()); else say(""); }, 2000); };
    if (!text) { told(`there is no ${what} here`); return; }
    try { await navigator.clipboard.writeText(text); } catch {
      const area = document.createElement("textarea");
      area.value = text; body.append(area); area.select();
      document.execCommand("copy"); area.remove();
    }
    told(`copied the ${what}`);
  };
  const current = () => find(".row.current");
  const errorHere = () => all("[data-copy-error] > .panel").map((panel) =>  // what is folded in it is more than the error
    [...panel.children].filter((part) => !part.matches("details")).map((part) => part.innerText).join("\n")).join("\n\n");
  const copies = {
    y: () => copy((current()?.querySelector(".row-id:not(:empty), .row-title:has(+ .row-id:empty)") || find("[data-copy=id]"))?.textContent, "id"),
    c: () => copy(find(".command")?.textContent, "command"),
    e: () => copy(current()?.querySelector(".row-note")?.innerText || errorHere(), "error"),
  };

  // ---- The keyboard
  const move = (step) => {
    const rows = all(".row");
    if (!rows.length) return;
    const at = rows.findIndex((row) => row.contains(document.activeElement) || row.classList.contains("current"));
    const next = rows[Math.min(rows.length - 1, Math.max(0, at < 0 ? (step > 0 ? 0 : rows.length - 1) : at + step))];
    rows.forEach((row) => row.classList.toggle("current", row === next));
    next.querySelector("a")?.focus({ preventScroll: true });
    next.scrollIntoView({ block: "nearest" });
  };
  const places = { n: "./", r: "runs", c: "conversations", s: "sessions", p: "promises" };
  const go = (place) => { location.href = place === "./" ? root : root + place; };
  let isGoing = 0;
  const keys = {
    j: () => move(1),
    k: () => move(-1),
    o: () => (current()?.querySelector("a") || document.activeElement.closest?.("a"))?.click(),
    u: () => { const here = find(".top nav a[aria-current]"); if (here) location.href = here.href; },
    "/": () => {
      const field = find(".filters input[type=text], .filters input[type=search]");
      if (!field) { go("search"); return; }
      const fold = field.closest("details");
      if (fold) fold.open = true;
      field.focus();
    },
    a: () => all("main :is(.buttons button, .answer input[type=text], .act button, textarea, summary.danger)")
      .find((part) => part.getClientRects().length)?.focus(),
    ".": () => find("[data-show-new]")?.click(),
    "?": () => { const help = find("#keys"); help.open = !help.open; if (help.open) { help.scrollIntoView(); help.firstElementChild.focus(); } },
    ...copies,
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const isTyping = event.target.matches("input, textarea, select, [contenteditable]");
    if (event.key === "Escape") { document.activeElement.blur?.(); current()?.classList.remove("current"); return; }
    if (isTyping) return;
    if (isGoing && Date.now() - isGoing < 1500) {
      isGoing = 0;
      if (places[event.key]) { event.preventDefault(); go(places[event.key]); }
      return;
    }
    if (event.key === "g") { isGoing = Date.now(); return; }
    if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
  });

  // ---- Forms: a filter works when it is changed; a button is pressed once
  document.addEventListener("change", (event) => {
    if (event.target.matches(".filters select")) event.target.form.requestSubmit();
  });
  document.addEventListener("submit", (event) => {
    if (event.target.method !== "post") {
      for (const field of event.target.elements) if (field.name && !field.value) field.disabled = true;
      return;
    }
    setTimeout(() => all("button", event.target).forEach((button) => { button.disabled = true; }));
  });
  addEventListener("pageshow", () => all(":disabled").forEach((field) => { field.disabled = false; }));

  // ---- Signing in: somebody who followed a link from another site is signed in, but the browser did not say so
  if (find("[data-sign-in]") && !location.pathname.endsWith("/sign-in")) {
    fetch(location.href, { headers: { Accept: "text/html" } }).then((answer) => { if (answer.ok) location.reload(); }, () => {});
  }

  // On a narrow screen the way around is wider than it: where one is shall be seen. The page itself is not moved.
  const here = find(".top nav a[aria-current]");
  if (here) here.parentElement.scrollLeft = here.offsetLeft - here.parentElement.offsetLeft - 40;

  showTimes();
  follow();
  connect();
})();
