// The fullest keys: what each has used of the limit that leaves it least, as far as samples show.
import { cells, el, put, Rows } from './dom.js'
import { ask } from './daemon.js'
import { clock, count, ruleName, share, visible } from './words.js'

/** idOfKey tells the keys of a list apart. */
export const idOfKey = c => JSON.stringify([c.rule, c.key, c.cut, c.shadow])

/** fullRow makes a row: the key as showKey draws it, its rule if that is wanted, and what it has used. */
export function fullRow(showKey, withRule) {
  const { row, cells: all } = cells(withRule ? 3 : 2)
  const used = all.at(-1), meter = el('meter', { min: 0, max: 1, low: 0.8, high: 0.95, optimum: 0, 'aria-hidden': 'true' }), text = el('span')
  used.className = 'gauge'
  used.append(meter, text)
  return { row, show(item) {
    showKey(all[0], item)
    if (withRule) put(all[1], ruleName(item))
    meter.value = item.used / item.limit
    put(text, `${count(item.used)} of ${count(item.limit)}, ${share(item.used, item.limit)}`)
    used.title = `as of ${clock(item.at)}`
  } }
}

const named = (cell, { key, cut }) => put(cell, `${visible(key) || '(empty)'}${cut ? '…' : ''}`)

const pause = 2000 // milliseconds from one look to the next

/** FullestOf is the table of the fullest keys of one rule. */
export class FullestOf {
  table = el('table', {}, el('thead', {}, el('tr', {}, el('th', { scope: 'col', textContent: 'Key' }), el('th', { scope: 'col', textContent: 'Used of limit' }))), el('tbody'))
  #rule
  #rows = new Rows(this.table, 'None yet, as far as samples show.', () => fullRow(named, false))
  #looked = -pause

  constructor(rule) {
    this.#rule = rule
  }

  /** look asks again, unless it has just asked. */
  async look() {
    if (performance.now() - this.#looked < pause) return
    this.#looked = performance.now()
    try {
      const { keys } = await ask(`v1/top?by=used&n=20&rule=${encodeURIComponent(this.#rule)}`)
      this.#rows.show(keys, idOfKey)
    } catch {
      // the next message asks again, and the page says elsewhere that the daemon is gone
    }
  }
}
