// The panel Audit: who has changed what.
import { by, cells, put, Rows } from './dom.js'
import { clock, visible } from './words.js'

let table

const text = value => value === null || value === undefined ? 'none' : visible(typeof value === 'string' ? value : JSON.stringify(value))

function makeRow() {
  const { row, cells: [when, who, what, rule, key, before, after] } = cells(7)
  for (const cell of [before, after]) cell.className = 'text'
  return { row, show(line) {
    put(when, clock(line.at))
    put(who, visible(line.who ?? ''))
    who.title = visible(line.from ?? '')
    put(what, line.what)
    put(rule, visible(line.rule ?? ''))
    put(key, `${visible(line.key ?? '')}${line.prefix ? '*' : ''}`)
    put(before, text(line.before))
    put(after, text(line.after))
  } }
}

/** showAudit draws the panel. */
export function showAudit({ audit }) {
  table ??= new Rows(by('audit-table'), 'Nothing has been changed since the daemon started.', makeRow)
  table.show(audit, line => JSON.stringify(line))
}
