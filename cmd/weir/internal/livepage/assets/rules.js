// The panel Rules: each rule with its text and its numbers. A click shows one rule and explains requests.
import { by, cells, el, put, Rows } from './dom.js'
import { ask } from './daemon.js'
import { count, rate, share, visible } from './words.js'
import { showRule } from './rule.js'

const differences = d => d ? [['stricter', d.stricter], ['looser', d.looser], ['errors', d.error]].filter(([, n]) => n).map(([what, n]) => `${count(n)} ${what}`).join(', ') || 'all the same' : ''

const besideText = n => [n?.candidate && `candidate: ${differences(n.candidate)}`, n?.shadow && `shadow: ${differences(n.shadow)}`].filter(Boolean).join('; ')

const number = of => item => item.numbers?.[of] ?? -1

// admitted counts the calls that a rule has admitted, also where another rule of the call was nearer to its limit.
const admitted = item => item.numbers ? Math.max(item.numbers.admitted, item.numbers.takes) : -1

// The columns: what they are called, how a rule is ordered by them, and whether the largest comes first.
const columns = [
  { title: 'Rule', of: item => item.rule },
  { title: 'Limit', of: item => item.limit },
  { title: 'Admitted', of: admitted, down: true },
  { title: 'Refused', of: number('refused'), down: true },
  { title: 'Refused/s', of: number('refused_rate'), down: true },
  { title: 'Headroom', of: item => item.numbers?.headroom ?? 2 },
  { title: 'Beside it', of: item => besideText(item.numbers), down: true },
]

const page = 100 // rows at first, and with each click

let texts = []          // of GET v1/admin/rules
let asked = null        // the reload that texts are of
let sort = { column: 4, down: true }
let shown = page
let table, last

/** limitOf returns the limit of a rule as text. */
export const limitOf = rule => rule.fields.find(f => f.name === 'limit')?.text ?? (rule.fields.find(f => f.name === 'deny') ? 'deny' : rule.fields.find(f => f.name === 'unlimited') ? 'unlimited' : '')

/** isShadow reports whether a rule with these fields refuses nothing. */
const isShadow = fields => fields.some(f => f.name === 'shadow')

/** textsOf returns the rules in force as they are written. */
export const ruleTexts = () => texts

async function readTexts(model) {
  const reload = `${model.now.started} ${model.now.reload?.at ?? ''} ${model.now.rules} ${model.now.shadows ?? 0}`
  if (asked === reload) return
  asked = reload
  try {
    texts = (await ask('v1/admin/rules')).rules
    by('rule-names').replaceChildren(...texts.slice(0, 1000).map(r => el('option', { value: r.rule })))
    showRules(last ?? model)
  } catch (error) {
    asked = null // the next message tries again
  }
}

function makeRow() {
  const { row, cells: [name, limit, taken, refused, now, headroom, beside] } = cells(7, 2, 3, 4)
  const link = el('a')
  const mark = el('small', { title: 'It decides and counts, and refuses nothing.' })
  const meter = el('meter', { min: 0, max: 1, low: 0.1, high: 0.25, optimum: 1 })
  const left = el('span')
  name.append(link, mark)
  limit.className = 'text'
  headroom.className = 'gauge'
  headroom.append(meter, left)
  return { row, show({ rule, limit: text, numbers: n, fields }) {
    put(link, visible(rule))
    put(mark, (n?.is_shadow ?? isShadow(fields)) ? ' shadow' : '')
    link.href = `#rules/${encodeURIComponent(rule)}`
    put(limit, visible(text))
    put(taken, n ? count(admitted({ numbers: n })) : '0')
    put(refused, n ? count(n.refused) : '0')
    put(now, n ? rate(n.refused_rate ?? 0) : '0')
    now.dataset.state = n?.refused_rate > 0 ? 'warn' : ''
    meter.hidden = n?.headroom === undefined
    meter.value = n?.headroom ?? 0
    put(left, n?.headroom === undefined ? '' : share(n.headroom, 1))
    meter.setAttribute('aria-hidden', 'true') // the share beside it says the same
    put(beside, besideText(n))
  } }
}

function makeHead() {
  const head = by('rules-table').tHead.rows[0]
  columns.forEach((column, i) => {
    const button = el('button', { type: 'button', textContent: column.title, onclick: () => {
      sort = { column: i, down: sort.column === i ? !sort.down : !!column.down }
      button.blur() // so that the rows move at once
      showRules(last)
    } })
    head.append(el('th', { scope: 'col', className: column.down && i < 6 ? 'n' : '' }, button))
  })
  by('rules-find').addEventListener('input', () => { shown = page; showRules(last) })
  by('rules-more').addEventListener('click', () => { shown += page; showRules(last) })
}

function listed(model) {
  const find = by('rules-find').value.toLowerCase()
  const all = texts.map(r => ({ rule: r.rule, limit: limitOf(r), numbers: model.rules.get(r.rule), fields: r.fields }))
  const found = find ? all.filter(r => r.rule.toLowerCase().includes(find) || r.fields.some(f => f.text.toLowerCase().includes(find))) : all
  const { of } = columns[sort.column], sign = sort.down ? -1 : 1
  const compare = (x, y) => x < y ? -1 : x > y ? 1 : 0
  return found.sort((x, y) => sign * compare(of(x), of(y)) || compare(admitted(y), admitted(x)) || compare(x.rule, y.rule))
}

/** showRules draws the panel. */
export function showRules(model) {
  last = model
  if (!table) {
    makeHead()
    table = new Rows(by('rules-table'), 'No rule.', makeRow)
  }
  readTexts(model)
  const found = listed(model)
  Array.from(by('rules-table').tHead.rows[0].cells).forEach((th, i) => th.setAttribute('aria-sort', i !== sort.column ? 'none' : sort.down ? 'descending' : 'ascending'))
  put(by('rules-count'), found.length === texts.length ? `${count(texts.length)} rules` : `${count(found.length)} of ${count(texts.length)} rules`)
  by('rules-more').hidden = found.length <= shown
  table.show(found.slice(0, shown), item => item.rule)
  showRule(model, texts)
}
