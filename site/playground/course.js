// A Course draws what one limit does over time: the attempts one by one, the level, and what goes ahead within any second.
const margin = { left: 44, right: 8 }

export class Course {
  constructor(course, report, length, each) {
    Object.assign(this, { course, report, length, each, chosen: -1, now: length })
    this.canvas = weir.element('canvas', { tabIndex: 0 })
    this.canvas.setAttribute('role', 'application')
    this.canvas.setAttribute('aria-roledescription', 'timeline')
    this.canvas.setAttribute('aria-label', `${report.limit}: attempts over time. The arrow keys go from one to the next.`)
    this.said = weir.element('p', { className: 'readout' })
    this.said.setAttribute('role', 'status')
    this.figure = weir.element('figure', { className: 'course' }, this.caption(), this.canvas, this.said, this.table())
    this.canvas.addEventListener('pointermove', event => this.point(event))
    this.canvas.addEventListener('pointerdown', event => this.point(event))
    this.canvas.addEventListener('keydown', event => this.key(event))
    this.say()
    new ResizeObserver(() => this.draw(this.now)).observe(this.canvas)
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.draw(this.now))
  }

  caption() {
    const r = this.report, n = weir.number
    let text = `${n(r.admitted)} admitted, ${n(r.refused)} refused`
    if (r.attempts > r.admitted + r.refused) text += `, in ${n(r.attempts)} attempts`
    text += `. At most ${n(r.most[0])} went ahead within any second`
    if (r.window) text += `, and ${n(r.most_in_window)} within any ${n(r.window)} s: ${r.times_count.toFixed(2)} times its count`
    return weir.element('figcaption', {}, weir.element('strong', { textContent: r.limit }), weir.element('span', { textContent: text + '.' }))
  }

  // table has the attempts as text, for who cannot see the picture.
  table() {
    const most = 200
    const details = weir.element('details', {}, weir.element('summary', { textContent: 'The attempts as a table' }))
    details.addEventListener('toggle', () => {
      if (!details.open || details.querySelector('table')) return
      const row = (kind, cells) => weir.element('tr', {}, ...cells.map(text => weir.element(kind, { textContent: text, className: 'n' })))
      const body = weir.element('tbody', {}, ...this.course.attempts.slice(0, most).map(a => row('td', [a.at.toFixed(3), a.client + 1, a.passed ? 'admitted' : 'refused', again(a)])))
      details.append(weir.element('div', { className: 'rows' }, weir.element('table', {}, weir.element('thead', {}, row('th', ['at, s', 'client', 'answer', 'then'])), body)))
      const rest = this.course.attempts.length - most + (this.course.unshown ?? 0)
      if (rest > 0) details.append(weir.element('p', { textContent: `and ${weir.number(rest)} more` }))
    })
    return details
  }

  x(at) { return margin.left + (this.width - margin.left - margin.right) * at / this.length }

  point(event) {
    const at = (event.offsetX - margin.left) / (this.width - margin.left - margin.right) * this.length
    let best = -1, near = this.length / 40
    this.course.attempts.forEach((a, i) => { if (Math.abs(a.at - at) < near) near = Math.abs(a.at - at), best = i })
    this.choose(best)
  }

  key(event) {
    const all = this.course.attempts.length
    const to = { ArrowRight: this.chosen + 1, ArrowLeft: this.chosen - 1, Home: 0, End: all - 1 }[event.key]
    if (to === undefined || all === 0) return
    event.preventDefault()
    this.choose(Math.min(Math.max(to, 0), all - 1))
  }

  choose(i) {
    this.chosen = i
    this.say()
    this.draw(this.now)
  }

  say() {
    const a = this.course.attempts[this.chosen]
    this.said.textContent = a ? `At ${a.at.toFixed(3)} s client ${a.client + 1}${a.again ? `, back for the ${ordinal(a.again)} time,` : ''} is ${a.passed ? 'admitted' : 'refused'}${again(a) ? ', ' + again(a) : ''}.`
      : this.course.unshown ? `The first ${weir.number(this.course.attempts.length)} attempts are drawn, and ${weir.number(this.course.unshown)} more count.` : 'Point at an attempt, or use the arrow keys.'
  }

  // draw shows what has happened until an instant, and the rest pale.
  draw(now) {
    this.now = now
    const { canvas } = this, ratio = devicePixelRatio || 1
    if (!canvas.clientWidth) return
    this.width = canvas.clientWidth
    this.height = canvas.clientHeight
    canvas.width = Math.round(this.width * ratio)
    canvas.height = Math.round(this.height * ratio)
    const p = this.p = canvas.getContext('2d')
    p.scale(ratio, ratio)
    const style = getComputedStyle(canvas)
    this.colours = Object.fromEntries(['ink', 'soft', 'line', 'admitted', 'refused', 'mark'].map(name => [name, style.getPropertyValue('--' + name).trim()]))
    p.font = `12px ${style.fontFamily}`
    const h = this.height, lanes = [[18, h * 0.44], [h * 0.53, h * 0.72], [h * 0.8, h - 20]]
    this.windows(lanes)
    this.attempts(...lanes[0])
    const { course } = this
    const name = course.left ? 'units left' : 'counted in the window'
    if (course.level) this.steps(...lanes[1], course.level, course.capacity, name + (this.each ? `, of client ${(course.attempts[0]?.client ?? 0) + 1}` : ''), this.colours.mark)
    this.steps(...lanes[2], course.second, Math.max(...course.second, 1), 'ahead within a second', this.colours.admitted)
    this.axis(h - 4)
    p.strokeStyle = this.colours.ink
    this.line(this.x(now), 14, this.x(now), h - 20)
  }

  line(x, y, x2, y2) {
    this.p.beginPath()
    this.p.moveTo(x, y)
    this.p.lineTo(x2, y2)
    this.p.stroke()
  }

  // windows draws where windows begin.
  windows(lanes) {
    const { window, phase = 0 } = this.course
    if (!window || this.length / window > 200) return
    this.p.setLineDash([3, 4])
    this.p.strokeStyle = this.colours.soft
    for (let at = ((phase % window) + window) % window; at <= this.length; at += window) this.line(this.x(at), lanes[0][0] - 4, this.x(at), lanes[1][1])
    this.p.setLineDash([])
  }

  // attempts stacks those of a few pixels: admitted above the line, refused below it.
  attempts(top, bottom) {
    const { p, colours } = this, middle = top + (bottom - top) * 0.6
    const size = 6, stacks = new Map()
    let most = 1
    const place = this.course.attempts.map(a => {
      const column = Math.round(this.x(a.at) / size) + (a.passed ? 0 : 1e6)
      const n = (stacks.get(column) ?? 0) + 1
      stacks.set(column, n)
      most = Math.max(most, n)
      return n - 1
    })
    const step = Math.min(14, (bottom - top) * 0.38 / most)
    this.course.attempts.forEach((a, i) => {
      const x = Math.round(this.x(a.at) / size) * size, chosen = i === this.chosen
      const y = a.passed ? middle - 3 - (place[i] + 1) * step : middle + 3 + place[i] * step
      p.globalAlpha = a.at <= this.now || chosen ? 1 : 0.2
      p.fillStyle = a.passed ? colours.admitted : colours.refused
      p.fillRect(x - size / 2, y, size - 1, Math.max(step - 1, 0.5))
      if (!chosen) return
      p.strokeStyle = colours.ink
      p.strokeRect(x - size / 2 - 2, y - 2, size + 3, Math.max(step - 1, 0.5) + 4)
      const then = a.at + (a.passed ? a.delay ?? 0 : a.retry ?? 0)
      if (then > a.at && then <= this.length) {
        p.strokeStyle = p.fillStyle
        this.line(x, bottom + 6, this.x(then), bottom + 6)
        p.fillRect(this.x(then) - 3, bottom + 3, 6, 6)
      }
    })
    p.globalAlpha = 1
    p.strokeStyle = colours.soft
    this.line(margin.left, middle, this.width - margin.right, middle)
    p.fillStyle = colours.admitted
    p.fillText('admitted', margin.left, top - 6)
    p.fillStyle = colours.refused
    p.fillText('refused', margin.left + 62, top - 6)
  }

  // steps draws numbers over time, below their name.
  steps(top, bottom, values, highest, name, colour) {
    const { p, colours, course } = this
    p.fillStyle = colours.soft
    p.fillText(name, margin.left, top - 5)
    p.textAlign = 'right'
    p.fillText(weir.number(highest), margin.left - 5, top + 9)
    p.fillText('0', margin.left - 5, bottom + 2)
    p.textAlign = 'left'
    p.strokeStyle = colours.line
    p.strokeRect(margin.left, top, this.width - margin.left - margin.right, bottom - top)
    p.strokeStyle = colour
    p.lineWidth = 1.5
    for (const pale of [true, false]) {
      p.globalAlpha = pale ? 0.2 : 1
      p.beginPath()
      values.forEach((value, i) => {
        const at = i * course.every
        if (!pale && at > this.now) return
        const y = bottom - (bottom - top) * Math.min(value / (highest || 1), 1)
        i === 0 ? p.moveTo(this.x(at), y) : p.lineTo(this.x(at), y)
        p.lineTo(this.x(Math.min(at + course.every, this.length)), y)
      })
      p.stroke()
    }
    p.globalAlpha = 1
    p.lineWidth = 1
  }

  axis(y) {
    const { p, colours } = this, wide = this.width > 420 ? 10 : 5
    p.fillStyle = colours.soft
    for (let i = 0; i <= wide; i++) {
      const at = this.length * i / wide
      p.textAlign = i === 0 ? 'left' : i === wide ? 'right' : 'center'
      p.fillText(`${weir.number(at)}${i === wide ? ' s' : ''}`, this.x(at), y)
    }
    p.textAlign = 'left'
  }
}

// again says what follows for the client.
function again(a) {
  if (a.passed) return a.delay ? `goes ahead after ${weir.number(a.delay)} s` : ''
  if (a.retry === -1) return 'never to be admitted'
  return a.retry ? `may come again after ${a.retry.toFixed(3)} s, at ${(a.at + a.retry).toFixed(3)} s` : ''
}

function ordinal(n) {
  const ends = { one: 'st', two: 'nd', few: 'rd', other: 'th' }
  return n + ends[new Intl.PluralRules('en-GB', { type: 'ordinal' }).select(n)]
}
