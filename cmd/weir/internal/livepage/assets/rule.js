// One rule: its fields, and how a request that is typed or picked from the refused ones would be decided.
import { by, el, put } from './dom.js'
import { ask } from './daemon.js'
import { ctl } from './ask.js'
import { clock, count, visible, whole } from './words.js'
import { FullestOf } from './fullest.js'

let drawn = '' // what is in the panel
let fullest = null // the table in it

/** chosen returns the rule in the address of the page, or ''. */
function chosen() {
  const [, name] = location.hash.match(/^#rules\/(.*)$/) ?? []
  try {
    return decodeURIComponent(name ?? '')
  } catch {
    return ''
  }
}

/** showRule draws the chosen rule. */
export function showRule(model, texts) {
  const name = chosen(), panel = by('rule')
  panel.hidden = name === ''
  panel.parentNode.classList.toggle('opened', name !== '')
  const rule = texts.find(r => r.rule === name)
  const admin = model.may.has('admin')
  const drawing = JSON.stringify([rule ?? name, admin])
  if (name !== '' && drawing === drawn) fullest?.look()
  if (drawing === drawn || name === '') return
  drawn = drawing
  fullest = null
  const close = el('a', { href: '#rules', className: 'close', textContent: 'Close' })
  if (!rule) {
    panel.replaceChildren(close, el('p', { textContent: `No rule in force has the name ${visible(name)}.` }))
    return
  }
  const fields = el('dl', { className: 'fields' }, ...rule.fields.flatMap(f => [el('dt', { textContent: f.name }), el('dd', { textContent: visible(f.text) })]))
  if (rule.file) fields.append(el('dt', { textContent: 'file' }), el('dd', { textContent: visible(`${rule.file}:${rule.line}`) }))
  panel.replaceChildren(close, el('h2', { textContent: visible(rule.rule) }), fields, ...admin ? [...nearest(rule), ...explainer(rule)] : [])
}

/** nearest shows the keys of a rule that are nearest to its limit. */
function nearest(rule) {
  if (rule.fields.some(f => f.name === 'deny' || f.name === 'unlimited')) return []
  fullest = new FullestOf(rule.rule)
  fullest.look()
  return [el('h3', { textContent: 'Nearest to the limit' }), el('p', { className: 'soft', textContent: 'Sampled: a key that few calls use may be missing.' }), el('div', { className: 'rows' }, fullest.table)]
}

/** attributesOf reads lines of NAME=VALUE. */
function attributesOf(text) {
  const lines = text.split('\n').filter(l => l.trim() !== '')
  const wrong = lines.find(l => l.indexOf('=') < 1)
  if (wrong !== undefined) throw new Error(`“${wrong}” is no attribute: want NAME=VALUE, like path=/login`)
  return Object.fromEntries(lines.map(l => [l.slice(0, l.indexOf('=')).trim(), l.slice(l.indexOf('=') + 1)]))
}

function explainer(rule) {
  const input = el('textarea', { rows: 3, spellcheck: false, placeholder: 'path=/login\nclient=203.0.113.7' })
  const shell = el('code'), answer = el('div', { 'aria-live': 'polite' }), picks = el('ul', { className: 'picks' })
  const explain = async () => {
    try {
      const attributes = attributesOf(input.value)
      put(shell, ctl('explain', [], Object.entries(attributes).map(([n, v]) => `${n}=${v}`)).replace(/^weir ctl /, 'weir '))
      answer.replaceChildren(...explanation(await ask('v1/admin/explain', { attributes, cost: 1 })))
    } catch (error) {
      answer.replaceChildren(el('p', { className: 'problem', textContent: error.message }))
    }
  }
  const form = el('form', { onsubmit: event => { event.preventDefault(); explain() } },
    el('label', {}, 'A request, one attribute a line', input), el('button', { textContent: 'Explain' }))
  pick(rule, picks, attributes => {
    input.value = Object.entries(attributes).map(([n, v]) => `${n}=${v}`).join('\n')
    explain()
  })
  return [el('h3', { textContent: 'Explain a request' }), form, el('pre', {}, shell), answer, el('h3', { textContent: 'Refused lately' }), picks]
}

/** draft returns a request that the rule would count under a key, or null if its key is more than one attribute. */
function draft({ fields }, key) {
  const of = name => fields.find(f => f.name === name)?.text ?? ''
  if (of('key') === '' || of('key').includes(', ') || of('hashed') !== '' || ['', 'otherwise'].includes(of('match'))) return null // no attributes find it
  const match = of('match') === 'any' ? [] : of('match').split('; ').filter(c => !c.startsWith('except ')).map(c => c.split(/: (.*)/s))
  return Object.fromEntries([...match.map(([name, patterns]) => [name, patterns.split(', ')[0].replaceAll('*', '')]), [of('key'), key]])
}

/** pick lists the keys that the rule has refused lately, each a button that asks why. */
async function pick(rule, list, use) {
  const nothing = text => list.replaceChildren(el('li', { className: 'soft', textContent: text }))
  try {
    const last = new Map() // of each key
    for (const request of (await ask('v1/admin/refused', { rule: rule.rule })).requests) if (!last.has(request.key)) last.set(request.key, request)
    if (!last.size) return nothing('None lately.')
    list.replaceChildren(...Array.from(last.values(), ({ at, key }) => {
      const request = whole(key) ? draft(rule, key) : null, text = `${clock(at)} ${visible(key)}`
      return el('li', {}, request ? el('button', { type: 'button', textContent: text, onclick: () => use(request) }) : text)
    }))
  } catch (error) {
    nothing(error.message)
  }
}

function explanation({ answer, rules = [], notes = [], warnings = [] }) {
  return [
    el('p', { className: 'answer', textContent: answer }),
    ...(rules ?? []).flatMap(step => [step, ...step.otherwise ?? []].map((one, i, chain) => el('p', {},
      i ? `If ${visible(chain[i - 1].rule)} refuses: ` : '', el('b', { textContent: visible(one.rule) }), stepText(one)))),
    ...notes.map(n => el('p', { className: 'soft', textContent: visible(n) })),
    ...warnings.slice(0, 3).map(w => el('p', { className: 'soft', textContent: visible(w.message ?? '') })),
  ]
}

function stepText(step) {
  if (step.key === undefined) return ' matches.'
  const state = step.remaining === undefined ? '' : `, ${count(step.remaining)} remain`
  const free = step.retry_after ? step.retry_after === 'never' ? ', never admitted' : `, ${step.cause === 'ban' ? 'banned for' : 'free in'} ${step.retry_after}` : ''
  return ` counts the key ${visible(step.key)} by ${visible(step.limit)}${state}${free}.`
}
