"use strict";
(function () {
  const $ = (id) => document.getElementById(id);
  const data = JSON.parse($("data").textContent);
  const map = $("map"), svg = map.querySelector("svg"), tip = $("tip"), told = $("told"), here = $("here");
  const points = $("points").children, view = svg.viewBox.baseVal;
  const landmarks = new Set(data.landmark);
  const pressed = document.querySelector("[data-pick][aria-pressed=true]");
  let model = pressed ? Number(pressed.dataset.pick) : 0;
  let only = -1, current = -1;
  const n = data.names.length, dot = Number(svg.dataset.dot), cross = "l" + 2 * dot + "," + 2 * dot + "m0,-" + 2 * dot + "l-" + 2 * dot + "," + 2 * dot;

  // -- the description of an object, as text, never as markup
  function facts(i) {
    const m = data.models[model], own = data.classes[data.code[i]], taken = data.classes[m.taken[i]];
    const answer = m.taken[i] === data.code[i]
      ? own + ", labelled correctly (" + m.p[i] + " %)"
      : own + ", predicted as " + taken + " (" + m.p[i] + " %)";
    return answer + (landmarks.has(i) ? ", landmark" : "");
  }
  function show(i, speak) {
    current = i;
    if (i < 0) { tip.hidden = true; here.setAttribute("cx", -40); return; }
    here.setAttribute("cx", data.x[i]);
    here.setAttribute("cy", data.y[i]);
    const name = document.createElement("b");
    name.textContent = data.names[i];
    tip.replaceChildren(name, document.createTextNode(facts(i)));
    tip.hidden = false;
    const box = svg.getBoundingClientRect(), scale = box.width / view.width;
    const x = data.x[i] * scale, y = data.y[i] * scale;
    const left = Math.min(Math.max(x - tip.offsetWidth / 2, 4), map.clientWidth - tip.offsetWidth - 4);
    const above = y - tip.offsetHeight - 14;
    tip.style.left = Math.max(left, 4) + "px";
    tip.style.top = (above > 0 ? above : y + 14) + "px";
    if (speak) told.textContent = data.names[i] + ": " + facts(i);
  }
  const group = data.group || data.code;
  const open = (i) => only < 0 || group[i] === only;

  // -- pointer: the nearest object
  function nearest(event) {
    const box = svg.getBoundingClientRect(), scale = box.width / view.width;
    const x = (event.clientX - box.left) / scale, y = (event.clientY - box.top) / scale;
    let best = -1, reach = (event.pointerType === "touch" ? 26 : 14) / scale;
    reach *= reach;
    for (let i = 0; i < n; i++) {
      if (!open(i)) continue;
      const d = (data.x[i] - x) ** 2 + (data.y[i] - y) ** 2;
      if (d < reach) { reach = d; best = i; }
    }
    return best;
  }
  svg.addEventListener("pointermove", (event) => show(nearest(event), false));
  svg.addEventListener("pointerdown", (event) => show(nearest(event), true));
  svg.addEventListener("pointerleave", () => { if (document.activeElement !== map) show(-1); });

  // -- keyboard: from object to object
  const ways = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  function next(way) {
    if (current < 0 || !open(current)) return first();
    let best = current, cost = Infinity;
    for (let i = 0; i < n; i++) {
      if (i === current || !open(i)) continue;
      const dx = data.x[i] - data.x[current], dy = data.y[i] - data.y[current];
      const along = dx * way[0] + dy * way[1], aside = Math.abs(dx * way[1]) + Math.abs(dy * way[0]);
      if (along <= 0 || aside > 2 * along) continue;
      const c = along + 2 * aside;
      if (c < cost) { cost = c; best = i; }
    }
    return best;
  }
  function first() { for (let i = 0; i < n; i++) if (open(i)) return i; return -1; }
  map.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { show(-1); return; }
    const way = ways[event.key];
    if (!way) return;
    event.preventDefault();
    show(next(way), true);
  });
  map.addEventListener("focus", () => { if (current < 0 && map.matches(":focus-visible")) show(first(), true); });
  map.addEventListener("blur", () => show(-1));

  // -- one class, the rest grey
  function highlight(code) {
    only = code;
    for (let i = 0; i < n; i++) points[i].classList.toggle("off", !open(i));
    for (const ring of $("landmarks").children) ring.classList.toggle("off", !open(Number(ring.dataset.i)));
    for (const label of document.querySelectorAll(".labels > g")) {
      label.classList.toggle("off", code >= 0 && Number(label.dataset.code) !== code);
    }
    drawErrors();
    show(-1);
  }
  function drawErrors() {
    for (const group of $("errors").children) {
      const m = data.models[Number(group.dataset.model)];
      let d = "";
      for (let i = 0; i < n; i++) if (m.taken[i] !== data.code[i] && open(i)) d += "M" + (data.x[i] - dot) + "," + (data.y[i] - dot) + cross;
      group.firstElementChild.setAttribute("d", d);
    }
  }
  $("only").addEventListener("change", (event) => highlight(event.target.value === "" ? -1 : Number(event.target.value)));
  $("show-errors").addEventListener("change", (event) => $("errors").classList.toggle("hide", !event.target.checked));
  $("show-landmarks").addEventListener("change", (event) => $("landmarks").classList.toggle("hide", !event.target.checked));
  $("find").addEventListener("input", (event) => {
    const wanted = event.target.value.trim().toLowerCase();
    if (!wanted) { show(-1); return; }
    let i = data.names.findIndex((name) => name.toLowerCase() === wanted);
    if (i < 0) i = data.names.findIndex((name) => name.toLowerCase().includes(wanted));
    show(i, true);
    if (i < 0) told.textContent = "No object on the map has that in its name.";
  });
  for (const button of document.querySelectorAll("[data-go]")) {
    button.addEventListener("click", () => {
      $("only").value = "";
      highlight(-1);
      $("map-section").scrollIntoView();
      map.focus({ preventScroll: true });
      show(Number(button.dataset.go), true);
    });
  }

  // -- the list of classes: those with most errors first, or those with a name that is looked for
  const MOST = 30;
  function cell(tag, text, hover) {
    const one = document.createElement(tag);
    one.textContent = text;
    if (hover && hover !== text) one.title = hover;
    return one;
  }
  function listClasses() {
    if (!data.figures) return;
    const f = data.figures[model], names = data.short || data.classes;
    const wanted = $("find-class").value.trim().toLowerCase(), found = [];
    for (let c = 0; c < names.length; c++) if (data.classes[c].toLowerCase().includes(wanted)) found.push(c);
    const errors = (c) => f.size[c] + f.answered[c] - 2 * f.right[c];
    found.sort((a, b) => errors(b) - errors(a) || f.size[b] - f.size[a] || a - b);
    const share = (a, b) => b ? Math.round(100 * a / b) + " %" : "–";
    $("class-rows").replaceChildren(...found.slice(0, MOST).map((c) => {
      const row = document.createElement("tr"), other = f.other[c];
      const numbers = [f.size[c].toLocaleString("en"), share(f.right[c], f.size[c]), share(f.right[c], f.answered[c])];
      const cells = numbers.map((text) => { const one = cell("td", text); one.className = "num"; return one; });
      const name = cell("th", names[c], data.classes[c]);
      name.scope = "row";
      row.append(name, ...cells, other < 0 ? cell("td", "–") : cell("td", names[other], data.classes[other]));
      return row;
    }));
    $("class-count").textContent = found.length.toLocaleString("en") + (found.length === 1 ? " class" : " classes") + (found.length > MOST ? "; those with most errors are shown" : "");
  }
  if (data.figures) {
    $("find-class").addEventListener("input", listClasses);
    $("class-list").hidden = false;
    $("no-list").hidden = true;
    listClasses();
  }

  // -- which model is shown in detail
  function pick(k) {
    model = k;
    for (const button of document.querySelectorAll("[data-pick]")) button.setAttribute("aria-pressed", String(Number(button.dataset.pick) === k));
    for (const part of document.querySelectorAll(".per-model")) part.classList.toggle("on", Number(part.dataset.model) === k);
    for (const line of document.querySelectorAll("[data-line]")) line.classList.toggle("on", Number(line.dataset.line) === k);
    for (const name of document.querySelectorAll("[data-name]")) name.textContent = data.models[k].name;
    if (current >= 0) show(current, true);
    listClasses();
  }
  for (const button of document.querySelectorAll("[data-pick]")) button.addEventListener("click", () => pick(Number(button.dataset.pick)));
  if ($("picker")) $("picker").hidden = false;
  $("controls").hidden = false;
})();
