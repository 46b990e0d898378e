// The panel Now: is it up, and who is being refused.
import { by, cells, el, put, Rows } from './dom.js'
import { spark } from './spark.js'
import { clock, count, lasting, rate, share, visible } from './words.js'

const facts = new Map() // dd, by name

function fact(name, text, state = '') {
  if (!facts.has(name)) {
    const dd = el('dd')
    facts.set(name, dd)
    by('facts').append(el('div', {}, el('dt', { textContent: name }), dd))
  }
  const dd = facts.get(name)
  put(dd, text)
  dd.dataset.state = state
  dd.parentNode.hidden = text === ''
}

/** engineText says in words whether the engine decides. */
export function engineText(engine, at) {
  const since = `since ${clock(engine.since)} (${lasting(at - engine.since)})`
  if (engine.up) return `${engine.kind} decides, ${since}`
  return `${engine.kind} is away ${since}: ${engine.policy || 'the policy of each rule'} answers${engine.why ? `. ${engine.why}` : ''}`
}

function reloadText(reload) {
  if (!reload) return ''
  const when = `${clock(reload.at)}`
  if (reload.ok) return `${when}, without problems`
  const hidden = `${count(reload.number)} problem${reload.number === 1 ? '' : 's'}; a caller with admin sees them`
  return `${when} failed, and the earlier rules stay in force: ${reload.problems?.slice(0, 3).map(visible).join('; ') ?? hidden}`
}

/** pushedText says in words which rules of the control plane are in force, and whether it is there. */
export function pushedText(pushed, at) {
  if (!pushed) return ''
  const stream = `${visible(pushed.server)} ${pushed.connected ? 'connected' : 'away'} since ${clock(pushed.since)} (${lasting(at - pushed.since)})${pushed.why ? `: ${visible(pushed.why)}` : ''}`
  if (pushed.at === undefined) return `${stream}; no rules were pushed yet`
  const refused = pushed.refused ? `; ${count(pushed.refused)} ${pushed.refused === 1 ? 'resource' : 'resources'} refused` : ''
  return `${stream}; version ${visible(pushed.version)}, pushed ${lasting(at - pushed.at)} ago${pushed.restored ? ', restored from a file' : ''}${refused}`
}

function daemonsText({ seen, peers, auto } = {}) {
  if (!seen) return ''
  return `${seen} on this engine${peers ? `; a share is one of ${peers}${auto ? ', by itself' : ''}` : ''}`
}

function certificates(now, at) {
  for (const { flag, ends } of now.certificates ?? []) {
    const days = Math.floor((ends - at) / 86400)
    fact(`Certificate of --${flag}`, days < 0 ? `has ended, ${clock(ends)}` : `${count(days)} days left, until ${clock(ends)}`, days < 0 ? 'bad' : days < 14 ? 'warn' : '')
  }
}

function showFacts({ now, at, rules }) {
  let admitted = 0, refused = 0
  for (const r of rules.values()) {
    admitted += r.admitted_rate ?? 0
    refused += r.refused_rate ?? 0
  }
  fact('Engine', engineText(now.engine, at), now.engine.up ? 'good' : 'bad')
  fact('Requests', `${rate(admitted + refused)} a second`)
  fact('Refused', `${rate(refused)} a second, ${share(refused, admitted + refused)}`)
  fact('Latency', now.latency ? `${lasting(now.latency.p50)} half, ${lasting(now.latency.p99)} for 99 %` : 'no decisions now')
  fact('Daemons', daemonsText(now.daemons))
  fact('Ready', now.unready ? `no: ${now.unready}` : 'yes', now.unready ? 'bad' : '')
  fact('Shadow', now.all_shadows ? `${count(now.shadows ?? 0)} of ${count(now.rules)} rules are shadows and refuse nothing: --shadow` : '', 'warn')
  fact('Rules', `${count(now.rules)} in force${now.shadows && !now.all_shadows ? `, ${count(now.shadows)} of them shadows` : ''}${now.overrides ? `, ${count(now.overrides)} ${now.overrides === 1 ? 'override' : 'overrides'}` : ''}`)
  fact('Control plane', pushedText(now.pushed, at), now.pushed && (!now.pushed.connected || now.pushed.refused) ? 'warn' : '')
  fact('Last reload', reloadText(now.reload), now.reload && !now.reload.ok ? 'bad' : '')
  fact('Waiting', now.waiting ? `${count(now.waiting)} callers` : '')
  fact('Keys in memory', now.max_keys ? `${count(now.keys)} of ${count(now.max_keys)} at most` : '')
  fact('Version', `${now.version}${now.revision ? ` ${now.revision.slice(0, 12)}` : ''}, started ${clock(now.started)}`)
  certificates(now, at)
}

let busiest, chart

/** historyText says in words what the chart shows. */
function historyText({ admitted, refused, from, step }) {
  if (!admitted.length) return 'The picture begins with the first requests.'
  const sum = admitted.map((v, i) => v + refused[i]), peak = sum.indexOf(Math.max(...sum))
  return `Since ${clock(from - step)}. The last ${step} seconds: ${rate(admitted.at(-1))} admitted and ${rate(refused.at(-1))} refused a second. The most was ${rate(sum[peak])}, at ${clock(from + peak * step)}.`
}

function showHistory(history) {
  const { admitted, refused, from, step } = history
  put(by('chart-text'), historyText(history))
  const x = admitted.map((_, i) => from + (i - 1) * step)
  chart ??= weir.chart(by('chart'), { title: 'Requests a second', x, time: true, stacked: true, height: 220,
    series: [{ name: 'admitted', colour: 'admitted', area: true, values: admitted }, { name: 'refused', colour: 'refused', area: true, values: refused }] })
  chart.update(x, [admitted, refused])
}

function busiestRow() {
  const { row, cells: [name, picture, a, r] } = cells(4, 2, 3)
  picture.className = 'spark'
  const link = el('a')
  name.append(link)
  return { row, show({ rule, history, admitted, refused }) {
    put(link, visible(rule) || 'no rule')
    link.href = rule ? `#rules/${encodeURIComponent(rule)}` : '#rules'
    picture.replaceChildren(spark(history))
    put(a, rate(admitted))
    put(r, rate(refused))
    r.dataset.state = refused > 0 ? 'warn' : ''
  } }
}

/** showNow draws the panel. */
export function showNow(model) {
  busiest ??= new Rows(by('busiest-rules'), 'No rule has decided anything yet.', busiestRow)
  showFacts(model)
  showHistory(model.history)
  const list = Array.from(model.history.rules, ([rule, history]) => ({
    rule, history, admitted: model.rules.get(rule)?.admitted_rate ?? history.admitted.at(-1) ?? 0, refused: model.rules.get(rule)?.refused_rate ?? history.refused.at(-1) ?? 0,
  }))
  list.sort((x, y) => y.refused - x.refused || y.admitted - x.admitted || (x.rule < y.rule ? -1 : 1))
  busiest.show(list.slice(0, 10), item => item.rule)
}
