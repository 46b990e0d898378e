'use strict'
// weir.table(table) lets a reader sort a table by the heads of its columns, and filter its rows. Columns of class n hold
// numbers. A table with data-first shows only so many rows until a button shows all. The rows of <tfoot> stay.
weir.table = table => {
  const body = table.tBodies[0], rows = Array.from(body.rows), heads = Array.from(table.tHead.rows[0].cells)
  const first = Number(table.dataset.first || Infinity)
  const what = table.dataset.what || 'rows'
  let whole = false
  const filter = weir.element('input', { type: 'search', placeholder: `Filter ${what}` })
  filter.setAttribute('aria-label', `Filter ${what}`)
  const more = weir.element('button', { type: 'button' })
  const count = weir.element('small', {})
  count.setAttribute('role', 'status')

  function show() {
    const words = filter.value.toLowerCase().trim()
    let shown = 0, matching = 0
    for (const row of rows) {
      const matches = row.textContent.toLowerCase().includes(words)
      if (matches) matching++
      row.hidden = !matches || (!whole && shown >= first)
      if (!row.hidden) shown++
    }
    count.textContent = shown < rows.length || words ? `${weir.number(shown)} of ${weir.number(rows.length)} ${what}` : ''
    more.hidden = rows.length <= first || (!whole && matching <= first)
    more.textContent = whole ? `Show ${first}` : `Show all ${weir.number(matching)}`
  }

  const value = (row, i) => {
    const text = row.cells[i]?.textContent ?? ''
    return heads[i].classList.contains('n') ? parseFloat(text.replace(/[,%×<>]/g, '')) || 0 : text
  }

  function sort(i) {
    const numeric = heads[i].classList.contains('n')
    const falls = heads[i].ariaSort === 'descending' ? false : heads[i].ariaSort === 'ascending' ? true : numeric
    heads.forEach(h => h.removeAttribute('aria-sort'))
    heads[i].setAttribute('aria-sort', falls ? 'descending' : 'ascending')
    rows.sort((a, b) => {
      const x = value(a, i), y = value(b, i)
      return (numeric ? x - y : x < y ? -1 : x > y ? 1 : 0) * (falls ? -1 : 1)
    })
    body.append(...rows)
    show()
  }

  heads.forEach((head, i) => {
    const button = weir.element('button', { type: 'button', textContent: head.textContent })
    head.replaceChildren(button)
    button.addEventListener('click', () => sort(i))
  })
  filter.addEventListener('input', show)
  more.addEventListener('click', () => { whole = !whole; show() })
  if (rows.length > 5) (table.closest('.rows') ?? table).before(weir.element('div', { className: 'tools' }, filter, count))
  ;(table.closest('.rows') ?? table).after(weir.element('div', { className: 'tools' }, more))
  show()
}
