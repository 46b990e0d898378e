// The panel Keys: who is busy or refused, and what one key has left. From here keys are blocked, limited, granted and reset.
import { by, cells, el, put, Rows } from './dom.js'
import { ask } from './daemon.js'
import { change, ctl } from './ask.js'
import { clock, count, lasting, ruleName, share, visible, whole } from './words.js'
import { ruleTexts } from './rules.js'
import { fullRow, idOfKey } from './fullest.js'

let lists, last
let looked = null // the key that is looked up: {key, answer} or {key, problem}

/** keyButton opens a key, unless it is only the beginning of one, or not text. */
function showKey(cell, { key, cut }) {
  const id = JSON.stringify([key, cut])
  if (cell.dataset.id === id) return
  cell.dataset.id = id
  const text = `${visible(key) || '(empty)'}${cut ? '…' : ''}`
  cell.replaceChildren(cut || !whole(key) ? el('bdi', { textContent: text, title: cut ? 'Only the first 256 bytes are known.' : 'The key is not text, so this page cannot name it.' })
    : el('button', { type: 'button', className: 'key', onclick: () => lookUp(key) }, el('bdi', { textContent: text })))
}

function countRow() {
  const { row, cells: [key, rule, n] } = cells(3, 2)
  return { row, show(item) {
    showKey(key, item)
    put(rule, ruleName(item))
    put(n, `${item.overcount ? '≤ ' : ''}${count(item.count)}`)
    n.title = item.overcount ? `at least ${count(item.count - item.overcount)}` : ''
  } }
}

function bannedRow() {
  const { row, cells: [key, rule, left, end] } = cells(4)
  let ban
  end.append(el('button', { type: 'button', textContent: 'Lift', onclick: () => lift(ban) }))
  return { row, show(b) {
    ban = b
    showKey(key, b)
    put(rule, visible(b.rule))
    put(left, lasting(Math.max(b.until - last.at, 0)))
    left.title = clock(b.until)
    end.firstChild.hidden = b.cut || !whole(b.key)
  } }
}

async function lift({ rule, key }) {
  const made = await change({ title: `Lift the ban of ${visible(key)} under ${visible(rule)}`, shown: ctl('reset', [], [rule, key]), path: 'v1/admin/reset', body: () => ({ rule, key }) })
  if (made) lookAgain()
}

const placeOf = e => e.rule || 'all rules'

function overrideRow() {
  const { row, cells: [key, rule, limit, left, who, end] } = cells(6)
  let entry
  end.append(el('button', { type: 'button', textContent: 'End', onclick: () => clear(entry) }))
  return { row, show(e) {
    entry = e
    if (e.prefix) put(key, `${visible(e.key)}*`)
    else showKey(key, { key: e.key })
    put(rule, visible(placeOf(e)))
    put(limit, limitName(e.limit))
    put(left, lasting((Date.parse(e.until) / 1000) - last.at))
    left.title = clock(Date.parse(e.until) / 1000)
    put(who, visible(e.by ?? ''))
    end.firstChild.hidden = !whole(e.key)
  } }
}

const limitName = limit => limit === 'deny all' ? 'blocked' : limit === 'unlimited' ? 'allowed' : limit

const place = ({ rule, prefix }) => [...rule ? ['--rule', rule] : [], ...prefix ? ['--prefix'] : []]

async function clear(e) {
  const made = await change({ title: `End what is in force for ${visible(e.key)}`, shown: ctl('clear', place(e), [e.key]), path: 'v1/admin/remove', body: () => ({ rule: e.rule ?? '', key: e.key, prefix: !!e.prefix }) })
  if (made) lookAgain()
}

/** lookUp shows a key. */
async function lookUp(key) {
  by('key-input').value = key
  looked = { key }
  try {
    looked = { key, answer: await ask('v1/admin/key', { key }) }
  } catch (error) {
    looked = { key, problem: error.message }
  }
  drawKey()
}

function lookAgain() {
  if (looked) lookUp(looked.key)
}

function drawKey() {
  const { key, answer, problem } = looked, into = by('key')
  into.replaceChildren(el('h2', {}, el('bdi', { textContent: visible(key) })))
  if (problem) {
    into.append(el('p', { className: 'problem', textContent: problem }))
    return
  }
  if (!last.now.engine.up) into.append(el('p', { className: 'problem', textContent: 'The engine is away. These are the answers of the policy, not what the key has left.' }))
  const body = el('tbody', {}, ...answer.rules.map(r => limitRow(key, r)))
  if (!answer.rules.length) body.append(el('tr', {}, el('td', { colSpan: 6, className: 'soft', textContent: 'No request has this key under a rule in force.' })))
  const head = ['Rule', 'Limit', 'Remaining', 'Free', ''].map(text => el('th', { scope: 'col', textContent: text }))
  into.append(el('div', { className: 'rows' }, el('table', {}, el('thead', {}, el('tr', {}, ...head)), body)))
  if (answer.more) into.append(el('p', { className: 'soft', textContent: `${count(answer.more)} more rules are not shown.` }))
  for (const e of answer.overrides) into.append(el('p', {}, `${limitName(e.limit)} until ${clock(Date.parse(e.until) / 1000)}, ${visible(placeOf(e))}${e.prefix ? `, all keys that begin with ${visible(e.key)}` : ''}, by ${visible(e.by ?? '')} `))
  into.append(overrideForm(key))
}

const freeText = (after, cause) => after === null ? 'never' : after > 0 ? `in ${lasting(after)}${cause === 'ban' ? ', banned' : ''}` : 'now'

const unlimited = 2 ** 53 // what the daemon answers where nothing limits

function limitRow(key, r) {
  const about = { rule: r.rule, key }
  const reset = el('button', { type: 'button', textContent: 'Reset', onclick: async () => {
    if (await change({ title: `Reset ${visible(key)} under ${visible(r.rule)}`, shown: ctl('reset', [], [r.rule, key]), path: 'v1/admin/reset', body: () => about })) lookAgain()
  } })
  const units = el('input', { type: 'number', min: 1, value: 1, 'aria-label': `units to give back under ${r.rule}` })
  const grant = el('form', { className: 'inline', onsubmit: async event => {
    event.preventDefault()
    const n = units.valueAsNumber
    if (await change({ title: `Give ${count(n)} back to ${visible(key)} under ${visible(r.rule)}`, shown: ctl('grant', [], [r.rule, key, String(n)]), path: 'v1/admin/grant', body: () => ({ ...about, units: n }) })) lookAgain()
  } }, units, el('button', { textContent: 'Grant' }))
  const meter = el('meter', { min: 0, max: Math.max(1, r.limit), low: r.limit * 0.1, high: r.limit * 0.25, optimum: r.limit, value: r.remaining, 'aria-hidden': 'true' })
  return el('tr', {}, el('td', { textContent: visible(r.rule) }), el('td', { className: 'text', textContent: visible(r.text ?? '') }),
    el('td', { className: 'gauge' }, ...r.limit >= unlimited ? ['no limit'] : [meter, ` ${count(r.remaining)} of ${count(r.limit)}, ${share(r.remaining, r.limit)}`]), el('td', { textContent: freeText(r.retry_after, r.cause) }), el('td', {}, el('div', { className: 'do' }, reset, grant)))
}

// What an override puts in force, and the command that does.
const overrides = { block: 'deny all', allow: 'unlimited', limit: '' }

const units = { s: 1, m: 60, h: 3600, d: 86400 }

/** secondsOf reads a duration like 30m or 12h. */
function secondsOf(text) {
  const [, n, unit] = text.match(/^([1-9]\d{0,6})([smhd])$/) ?? []
  if (!n) throw new Error(`“${text}” is no duration: want one like 30m, 12h or 7d`)
  return n * units[unit]
}

/** goDuration writes seconds as weir ctl reads them: it knows no days. */
const goDuration = seconds => seconds % 3600 === 0 ? `${seconds / 3600}h` : seconds % 60 === 0 ? `${seconds / 60}m` : `${seconds}s`

/** endOf returns when a time of so many seconds has passed, on a whole second. The daemon accepts no end beyond 366 days. */
const endOf = seconds => seconds < 366 * units.d ? Math.ceil(Date.now() / 1000 + seconds) : Math.floor(Date.now() / 1000 + seconds)

function overrideForm(key) {
  const what = el('select', {}, ...Object.keys(overrides).map(name => el('option', { value: name, textContent: name })))
  const limit = el('input', { placeholder: '1000/s', autocomplete: 'off', spellcheck: false })
  const limitLabel = el('label', { hidden: true }, 'to ', limit)
  const rule = el('select', {}, el('option', { value: '', textContent: 'all rules' }), ...ruleTexts().slice(0, 1000).map(r => el('option', { value: r.rule, textContent: visible(r.rule) })))
  const during = el('input', { value: '1h', required: true, size: 5, autocomplete: 'off' })
  const prefix = el('input', { type: 'checkbox' })
  what.onchange = () => {
    limitLabel.hidden = what.value !== 'limit'
    limit.required = what.value === 'limit'
  }
  const submit = async event => {
    event.preventDefault()
    let seconds
    try {
      during.setCustomValidity('')
      seconds = secondsOf(during.value)
    } catch (error) {
      during.setCustomValidity(error.message)
      during.reportValidity()
      return
    }
    const text = overrides[what.value] || limit.value
    const at = { rule: rule.value, prefix: prefix.checked }
    const shown = ctl(what.value, ['--for', goDuration(seconds), ...place(at)], [key, ...what.value === 'limit' ? [text] : []])
    const body = () => ({ ...at, key, limit: text, until: new Date(endOf(seconds) * 1000).toISOString().replace('.000', '') })
    const title = { block: `Block ${visible(key)}`, allow: `Exempt ${visible(key)} from limits`, limit: `Limit ${visible(key)} to ${text}` }[what.value]
    if (await change({ title, shown, path: 'v1/admin/override', body })) lookAgain()
  }
  during.oninput = () => during.setCustomValidity('')
  return el('form', { className: 'bar', id: 'override-form', onsubmit: submit }, el('label', {}, 'Do ', what), limitLabel, el('label', {}, 'under ', rule), el('label', {}, 'for ', during),
    el('label', {}, prefix, ' and all keys that begin so'), el('button', { textContent: 'Put in force' }))
}

let overridesBefore = ''

/** showKeys draws the panel. */
export function showKeys(model) {
  last = model
  if (!lists) {
    lists = {
      banned: new Rows(by('banned-keys'), 'No key is banned.', bannedRow),
      refused: new Rows(by('refused-keys'), 'No key has been refused lately.', countRow),
      busiest: new Rows(by('busiest-keys'), 'No calls lately.', countRow),
      fullest: new Rows(by('fullest-keys'), 'No key has used anything, as far as samples show.', () => fullRow(showKey, true)),
      overrides: new Rows(by('overrides'), 'None.', overrideRow),
    }
    by('key-form').addEventListener('submit', event => { event.preventDefault(); lookUp(by('key-input').value) })
  }
  by('banned').hidden = !model.banned.length
  lists.banned.show(model.banned, idOfKey)
  lists.refused.show(model.refused, idOfKey)
  lists.busiest.show(model.busiest, idOfKey)
  lists.fullest.show(model.fullest, idOfKey)
  lists.overrides.show(model.overrides, e => JSON.stringify([e.rule, e.key, e.prefix]))
  const now = JSON.stringify(model.overrides)
  if (now !== overridesBefore && looked && !by('key').contains(document.activeElement)) lookAgain() // another one has changed something
  overridesBefore = now
}
