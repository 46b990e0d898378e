'use strict'
// Draws the charts of the page into their figures, makes the tables sort and filter, and lets a reader choose among parts.
const charts = new Map()
for (const c of JSON.parse(document.getElementById('data').textContent)) {
  if (c.every) {
    const last = c.series[0].values.length
    c.x = Array.from({ length: last + 1 }, (_, i) => (c.from || 0) + i * c.every)
    for (const s of c.series) s.values.push(s.values[last - 1])
  }
  charts.set(c.id, weir.chart(document.getElementById(c.id), c))
}
// A link in a table shows the day of whom it names.
document.addEventListener('click', e => charts.get(e.target.closest?.('td a')?.hash.slice(1))?.day())
document.querySelectorAll('table[data-what]').forEach(weir.table)
for (const buttons of document.querySelectorAll('.choices')) {
  buttons.hidden = false
  buttons.addEventListener('click', e => {
    if (!e.target.dataset.part) return
    for (const b of buttons.children) {
      b.setAttribute('aria-pressed', b === e.target)
      document.getElementById(b.dataset.part).hidden = b !== e.target
    }
  })
}
