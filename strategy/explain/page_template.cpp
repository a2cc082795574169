#include "strategy/explain/page_template.h"

namespace palimpsest {

const char* const page_template = R"html(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>@TITLE@</title>
<style>
:root { color-scheme: light dark; --page: #ffffff; --text: #1c2430; --soft: #5b6675; --line: #d5dbe3;
  --panel: #f5f7fa; --live: #2868b8; --again: #c2571a; --back: #2868b814; --limit: #b3261e; }
@media (prefers-color-scheme: dark) {
  :root { --page: #14181f; --text: #e6eaf0; --soft: #9aa6b5; --line: #333c49; --panel: #1c222c;
    --live: #6aa5ee; --again: #f0975c; --back: #6aa5ee1c; --limit: #ff8a80; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 70rem; background: var(--page); color: var(--text);
  font: 15px/1.5 system-ui, sans-serif; }
h1, p { overflow-wrap: anywhere; }
h1 { font-size: 1.35rem; margin: .2rem 0 .4rem; } h2 { font-size: 1.1rem; margin: 1.6rem 0 .4rem; }
p { margin: .3rem 0; } .soft { color: var(--soft); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: .6rem; }
.tile { background: var(--panel); border: 1px solid var(--line); border-radius: 6px; padding: .5rem .7rem; }
.tile b { display: block; font-size: 1.15rem; } .tile span { color: var(--soft); font-size: .85rem; }
.chart { position: relative; } svg { display: block; width: 100%; height: auto; }
svg text { fill: var(--soft); font-size: 12px; }
.tip { position: absolute; pointer-events: none; background: var(--page); border: 1px solid var(--line);
  border-radius: 6px; padding: .3rem .5rem; font-size: .85rem; max-width: min(22rem, 90%);
  overflow-wrap: anywhere; box-shadow: 0 2px 8px #0003; display: none; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { text-align: left; vertical-align: top; padding: .25rem .6rem .25rem 0;
  border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
th { color: var(--soft); font-weight: 500; } .number { text-align: right; white-space: nowrap; }
th.number, td.number { padding-right: .9rem; width: 1%; }
select, button { font: inherit; color: inherit; background: var(--panel); border: 1px solid var(--line);
  border-radius: 5px; padding: .1rem .5rem; }
.bar { background: var(--live); height: .5rem; border-radius: 2px; min-width: 1px; margin-top: .4rem; }
td:has(> .bar) { min-width: 5rem; }
@media (max-width: 40rem) { svg text { font-size: 24px; } td:has(> .bar) { display: none; }
  td:not(.number), th:not(.number) { min-width: 9rem; } }
</style>
</head>
<body>
<h1 id="title"></h1>
<p id="summary" class="soft"></p>
<div class="tiles" id="tiles"></div>
<main id="main"></main>
<script id="data" type="application/json">@DATA@</script>
<script>
'use strict';
{
const data = JSON.parse(document.getElementById('data').textContent);
const main = document.getElementById('main');
const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
function bytes(n) {
  let unit = 0;
  while (n >= 1024 && unit < 4) { n /= 1024; ++unit; }
  return (unit === 0 ? n : n.toPrecision(n < 1000 ? 3 : 4)) + ' ' + units[unit];
}
function percent(x) { return (100 * x).toFixed(1) + ' %'; }
function seconds(x) {
  return x >= 1 ? x.toPrecision(3) + ' s' : x >= 1e-3 ? (1e3 * x).toPrecision(3) + ' ms'
    : (1e6 * x).toPrecision(3) + ' µs';
}
function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  made.append(...children);
  return made;
}
function drawn(name, attributes, text) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}
function table(heads, rows) {
  const body = element('tbody');
  for (const row of rows) {
    const line = element('tr');
    row.forEach((cell, i) => line.append(element('td', heads[i][1] ? {class: 'number'} : {}, cell)));
    body.append(line);
  }
  const head = element('tr');
  for (const [text, number] of heads) head.append(element('th', number ? {class: 'number'} : {}, text));
  return element('div', {class: 'wide'}, element('table', {}, element('thead', {}, head), body));
}
function section(title, ...children) { main.append(element('h2', {}, title), ...children); }
function share(part) { const bar = element('div', {class: 'bar'}); bar.style.width = 100 * part + '%'; return bar; }

// Nodes are [operation, name, line, is backward, seconds, scope]; those but the numbers are indices of texts.
const text = (node, i) => data.texts[data.nodes[node][i]];
function describe(node) {
  const name = text(node, 1), line = text(node, 2);
  return text(node, 0) + (name ? ' ' + name : '') + (line ? ' (' + line + ')' : '');
}
function byteTicks(most) {
  let step = 1;
  while (most / step > 5) step *= 2;
  const found = [];
  for (let y = 0; y <= most; y += step) found.push(y);
  return found;
}
function ticks(most) {
  const rough = most / 4, power = Math.pow(10, Math.floor(Math.log10(rough)));
  const step = [1, 2, 5, 10].map(f => f * power).find(s => s >= rough);
  const found = [];
  for (let y = 0; y <= most; y += step) found.push(y);
  return found;
}
const width = 960, left = innerWidth < 640 ? 130 : 78, right = 16, top = 16;
function axes(height, mostX, mostY, labelX, nameX, nameY) {
  const svg = drawn('svg', {viewBox: `0 0 ${width} ${height}`, role: 'img'});
  const bottom = height - 40;
  const x = v => left + v / (mostX || 1) * (width - left - right);
  const y = v => bottom - v / (mostY || 1) * (bottom - top);
  for (const v of (nameY === bytes ? byteTicks : ticks)(mostY || 1)) {
    svg.append(drawn('line', {x1: left, x2: width - right, y1: y(v), y2: y(v), stroke: 'var(--line)'}));
    svg.append(drawn('text', {x: left - 8, y: y(v) + 4, 'text-anchor': 'end'}, nameY(v)));
  }
  for (const v of (nameX === bytes ? byteTicks : ticks)(mostX || 1)) {
    svg.append(drawn('text', {x: x(v), y: bottom + 18, 'text-anchor': 'middle'}, nameX(v)));
  }
  svg.append(drawn('text', {x: (left + width - right) / 2, y: height - 4, 'text-anchor': 'middle'}, labelX));
  return {svg, x, y, bottom};
}
function limit(chart, value, label) {
  chart.svg.append(drawn('line', {x1: left, x2: width - right, y1: chart.y(value), y2: chart.y(value),
    stroke: 'var(--limit)', 'stroke-dasharray': '6 4'}));
  chart.svg.append(drawn('text', {x: width - right, y: chart.y(value) - 5, 'text-anchor': 'end'}, label));
}

document.getElementById('title').textContent = data.title;
document.getElementById('summary').textContent = data.summary;
for (const [label, value] of data.tiles) {
  document.getElementById('tiles').append(element('div', {class: 'tile'}, element('b', {}, value), element('span', {}, label)));
}

// Storages are [node, first step, last step, bytes, is scratch].
let chosen = data.peak_step;
const lists = element('div');
const readers = [];
if (data.steps) {
  data.steps.forEach((node, k) => { for (const s of data.reads[k]) (readers[s] = readers[s] || []).push(k); });
}
function reason(storage, k) {
  const [node, first, last, , scratch] = data.storages[storage];
  if (scratch) return 'scratch memory of this step';
  if (first === k) return 'made by this step';
  const later = (readers[storage] || []).find(r => r > k);
  if (later !== undefined) {
    const reader = data.steps[later];
    return 'read later by ' + (data.nodes[reader][3] ? 'the backward part, ' : '') + describe(reader);
  }
  if (last > k || !(readers[storage] || []).includes(k)) return 'result of the run';
  return 'read by this step for the last time';
}
function group(key, node) {
  if (key === 'value') return describe(node);
  if (key === 'operation') return text(node, 0);
  if (key === 'line') return text(node, 2) || 'unknown line';
  return text(node, 5) || 'no scope';
}
const grouping = element('select', {'aria-label': 'Group values by'});
for (const key of ['value', 'operation', 'scope', 'line']) grouping.append(element('option', {value: key}, 'by ' + key));
grouping.onchange = () => show(chosen);
function show(k) {
  chosen = k;
  const groups = new Map();
  let all = 0;
  data.storages.forEach((storage, s) => {
    const [node, first, last, size] = storage;
    if (k < first || k > last) return;
    const why = grouping.value === 'value' ? reason(s, k) : '';
    const key = group(grouping.value, node) + '\n' + why;
    const entry = groups.get(key) || {bytes: 0, count: 0, why};
    entry.bytes += size; entry.count += 1; all += size;
    groups.set(key, entry);
  });
  const rows = [...groups].sort((a, b) => b[1].bytes - a[1].bytes);
  const shown = rows.slice(0, 40).map(([key, entry]) => [bytes(entry.bytes), percent(entry.bytes / (all || 1)),
    '' + entry.count, key.split('\n')[0], entry.why, share(entry.bytes / (all || 1))]);
  lists.replaceChildren(
    element('p', {}, `Step ${k + 1} of ${data.steps.length}: ${describe(data.steps[k])}. ${bytes(all)} are live.`),
    table([['bytes', 1], ['share', 1], ['values', 1], ['value', 0], ['why', 0], ['', 0]], shown));
  if (rows.length > 40) lists.append(element('p', {class: 'soft'}, `and ${rows.length - 40} more`));
}
function liveChart() {
  const live = data.live, count = live.length;
  const most = Math.max(...data.limits.map(l => l[1]), data.most);
  const chart = axes(360, count, most * 1.04, 'step', v => '' + v, bytes);
  if (data.backward_step !== null) {
    chart.svg.append(drawn('rect', {x: chart.x(data.backward_step), y: top, fill: 'var(--back)',
      width: width - right - chart.x(data.backward_step), height: chart.bottom - top}));
    chart.svg.append(drawn('text', {x: chart.x(data.backward_step) + 6, y: chart.bottom - 8}, 'backward part'));
  }
  const pixels = width - left - right;
  let path = '', again = '';
  const per = Math.max(1, count / pixels);
  for (let from = 0; from < count; from += per) {
    const begin = Math.floor(from), end = Math.min(count, Math.max(begin + 1, Math.floor(from + per)));
    let low = Infinity, high = 0, repeats = false;
    for (let k = begin; k < end; ++k) {
      low = Math.min(low, live[k]); high = Math.max(high, live[k]); repeats = repeats || data.again[k];
    }
    const x = chart.x(begin);
    path += (path ? 'L' : 'M') + x.toFixed(1) + ' ' + chart.y(per > 1 ? low : high).toFixed(1);
    path += 'L' + (per > 1 ? x : chart.x(end)).toFixed(1) + ' ' + chart.y(high).toFixed(1);
    if (repeats) again += 'M' + x.toFixed(1) + ' ' + (chart.bottom + 2) + 'H' + Math.max(x + 1, chart.x(end)).toFixed(1);
  }
  chart.svg.append(drawn('path', {d: path, fill: 'none', stroke: 'var(--live)', 'stroke-width': 1.5}));
  if (again) chart.svg.append(drawn('path', {d: again, stroke: 'var(--again)', 'stroke-width': 4}));
  for (const [label, value] of data.limits) limit(chart, value, label);
  const cursor = drawn('line', {y1: top, y2: chart.bottom, stroke: 'var(--soft)', visibility: 'hidden'});
  chart.svg.append(cursor);
  const tip = element('div', {class: 'tip'});
  const holder = element('div', {class: 'chart'}, chart.svg, tip);
  const stepAt = event => {
    const box = chart.svg.getBoundingClientRect();
    const x = (event.clientX - box.left) / box.width * width;
    return Math.min(count - 1, Math.max(0, Math.floor((x - left) / (width - left - right) * count)));
  };
  chart.svg.addEventListener('pointermove', event => {
    const k = stepAt(event), box = chart.svg.getBoundingClientRect();
    cursor.setAttribute('visibility', 'visible');
    cursor.setAttribute('x1', chart.x(k + .5)); cursor.setAttribute('x2', chart.x(k + .5));
    tip.textContent = `step ${k + 1}: ${bytes(live[k])}, ${data.steps ? describe(data.steps[k]) : data.names[k]}` +
      (data.again[k] ? ', recomputed' : '');
    tip.style.display = 'block';
    const place = chart.x(k + .5) / width * box.width;
    tip.style.left = Math.max(0, Math.min(place + 8, box.width - tip.offsetWidth)) + 'px';
    tip.style.top = '1.5rem';
  });
  chart.svg.addEventListener('pointerleave', () => { tip.style.display = 'none'; cursor.setAttribute('visibility', 'hidden'); });
  if (data.steps) chart.svg.addEventListener('click', event => show(stepAt(event)));
  section('Live bytes', holder, element('p', {class: 'soft'},
    'Orange marks below the axis are recomputed steps.' + (data.steps ? ' Choose a step to list what is live.' : '')));
}
function budgetChart(found) {
  const points = found.curve.map(([budget, peak, overhead]) => [budget, overhead]);
  const mostX = Math.max(...points.map(p => p[0]), data.here[0]), mostY = Math.max(.01, ...points.map(p => p[1]), data.here[1]);
  const chart = axes(260, mostX * 1.03, mostY * 1.1, 'budget', bytes, percent);
  chart.svg.append(drawn('path', {fill: 'none', stroke: 'var(--live)', 'stroke-width': 1.5,
    d: points.map(([x, y], i) => (i ? 'L' : 'M') + chart.x(x).toFixed(1) + ' ' + chart.y(y).toFixed(1)).join('')}));
  for (const [x, y] of points) chart.svg.append(drawn('circle', {cx: chart.x(x), cy: chart.y(y), r: 3, fill: 'var(--live)'}));
  chart.svg.append(drawn('circle', {cx: chart.x(data.here[0]), cy: chart.y(data.here[1]), r: 6, fill: 'none',
    stroke: 'var(--again)', 'stroke-width': 2}));
  const list = element('ul');
  for (const line of found.lines) list.append(element('li', {}, line));
  section('Other budgets', chart.svg, element('p', {class: 'soft'}, 'Extra work by budget. The ring is this plan.'), list);
}
function lanes(title, count, name, tasks) {
  const most = tasks.reduce((most, task) => Math.max(most, task.end), 1);
  const height = 30 * count + 56;
  const svg = drawn('svg', {viewBox: `0 0 ${width} ${height}`, role: 'img'});
  const x = v => left + v / most * (width - left - right);
  for (let i = 0; i < count; ++i) svg.append(drawn('text', {x: 4, y: 30 * i + 30}, name + ' ' + i));
  for (const task of tasks) {
    const bar = drawn('rect', {x: x(task.start), y: 30 * task.lane + 14, height: 22, rx: 2, stroke: 'var(--page)',
      width: Math.max(1, x(task.end) - x(task.start)), fill: task.backward ? 'var(--again)' : 'var(--live)'});
    bar.append(drawn('title', {}, `${task.label}: ${seconds((task.end - task.start) * 1e-9)}`));
    svg.append(bar);
  }
  for (const v of ticks(most)) svg.append(drawn('text', {x: x(v), y: height - 22, 'text-anchor': 'middle'}, seconds(v * 1e-9)));
  section(title, svg);
}

if (data.live) liveChart();
if (data.steps) {
  const toPeak = element('button', {type: 'button'}, 'Go to the peak');
  toPeak.onclick = () => show(data.peak_step);
  section('What is live', element('p', {}, grouping, ' ', toPeak), lists);
  show(data.peak_step);
  const again = data.recomputed.map(([node, runs, time]) => [percent(time), '' + runs, describe(node)]).slice(0, 40);
  for (const [loop, repeated, run, time] of data.repeated_steps) again.push([percent(time), `${repeated} of ${run} steps again`, loop]);
  section('Recomputed', again.length ? table([['of the time', 1], ['runs', 1], ['value', 0]], again)
    : element('p', {}, 'Nothing is recomputed.'));
}
if (data.budgets) budgetChart(data.budgets);
for (const one of data.tables) {
  const [head, ...rows] = one.rows;
  section(one.title, table(head.map((name, i) => [name, i > 0 ? 1 : 0]), rows));
}
for (const one of data.lanes) lanes(one.title, one.count, one.name, one.tasks);
}
</script>
</body>
</html>
)html";

}  // namespace palimpsest
