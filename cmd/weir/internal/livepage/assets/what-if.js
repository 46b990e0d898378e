// The panel What if: the requests of the last minutes against another limit.
import { by, el } from './dom.js'
import { ask } from './daemon.js'
import { clock, count, share, visible } from './words.js'
import { limitOf, ruleTexts } from './rules.js'

function outcome(title, { admitted, refused }, requests) {
  return el('div', { className: 'outcome' }, el('h3', { textContent: title }),
    el('p', { className: 'large', textContent: `${count(refused)} refused` }), el('p', { className: 'soft', textContent: `${share(refused, requests)} of ${count(requests)}; ${count(admitted)} admitted` }))
}

function answerOf({ from, to, requests, sampled, before, after, keys = [] }) {
  if (!requests) return [el('p', { className: 'soft', textContent: 'The daemon has seen no request of this rule lately.' })]
  const rows = keys.map(k => el('tr', {}, el('td', {}, el('bdi', { textContent: visible(k.key) })), ...[k.requests, k.before, k.after].map(n => el('td', { className: 'n', textContent: count(n) }))))
  const head = ['Key', 'Requests', 'Refused now', 'Then'].map((text, i) => el('th', { scope: 'col', textContent: text, className: i ? 'n' : '' }))
  return [
    el('p', { textContent: `${count(requests)} requests from ${clock(from)} to ${clock(to)}${sampled > 1 ? `, all those of one key in ${count(sampled)}` : ''}. Under both limits every key begins unused.` }),
    el('div', { className: 'pair' }, outcome('In force', before, requests), outcome('Your limit', after, requests)),
    el('div', { className: 'rows' }, el('table', {}, el('thead', {}, el('tr', {}, ...head)), el('tbody', {}, ...rows))),
  ]
}

let asking = 0 // the last question, so that a late answer to an earlier one is dropped

async function tryLimit() {
  const rule = by('what-if-rule').value, limit = by('what-if-limit').value, into = by('what-if-answer')
  if (!rule || !limit) return
  const mine = ++asking
  let answer
  try {
    answer = answerOf(await ask('v1/admin/whatif', { rule, limit }))
  } catch (error) {
    answer = [el('p', { className: 'problem', textContent: error.message })]
  }
  if (mine === asking) into.replaceChildren(...answer)
}

/** beginWhatIf makes the form answer while it is typed. */
export function beginWhatIf() {
  let soon
  by('what-if-form').addEventListener('submit', event => { event.preventDefault(); tryLimit() })
  by('what-if-limit').addEventListener('input', () => { clearTimeout(soon); soon = setTimeout(tryLimit, 300) })
  by('what-if-rule').addEventListener('change', () => {
    const rule = ruleTexts().find(r => r.rule === by('what-if-rule').value)
    if (rule && !by('what-if-limit').value) by('what-if-limit').value = limitOf(rule)
    tryLimit()
  })
}
