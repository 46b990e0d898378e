// Checks the built site in Chromium, without a network: every link and anchor leads somewhere, axe finds nothing serious in light and
// in dark, no page scrolls sideways on a phone, the search finds a page, and the button turns the page dark.
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { createServer } from 'node:http'
import { extname, join } from 'node:path'
import { chromium } from 'playwright-core'

const site = join(import.meta.dirname, '.dist')
const repository = 'https://github.com/weirflow/weir/blob/main/'
const axe = readFileSync(new URL(import.meta.resolve('axe-core/axe.min.js')), 'utf8')
const types = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml', '.woff2': 'font/woff2', '.gz': 'application/gzip' }

const findings = []
const find = (page, what) => findings.push(`${page}: ${what}`)

const server = createServer((request, response) => {
  const path = new URL(request.url, 'http://localhost').pathname
  const file = join(site, path.endsWith('/') ? path + 'index.html' : path)
  if (!existsSync(file)) {
    response.writeHead(404).end()
    return
  }
  response.writeHead(200, { 'content-type': types[extname(file)] ?? 'application/octet-stream' }).end(readFileSync(file))
})
await new Promise(listening => server.listen(0, '127.0.0.1', listening))
const origin = `http://127.0.0.1:${server.address().port}/`

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: process.getuid() === 0 ? ['--no-sandbox'] : [],
})

// open returns a page of a phone that reaches nothing but the site.
async function open(colorScheme) {
  const context = await browser.newContext({ viewport: { width: 360, height: 740 }, colorScheme, reducedMotion: 'reduce' })
  await context.route(url => !url.href.startsWith(origin), route => {
    find(route.request().frame().url(), `asks ${route.request().url()}`)
    return route.abort()
  })
  const page = await context.newPage()
  page.on('response', r => r.status() >= 400 && find(page.url(), `${r.status()} for ${r.url()}`))
  page.on('pageerror', error => find(page.url(), `throws ${error}`))
  return page
}

async function serious(page) {
  await page.evaluate(axe)
  const { violations } = await page.evaluate(() => window.axe.run({ resultTypes: ['violations'] }))
  return violations.filter(v => ['serious', 'critical'].includes(v.impact))
    .map(v => `${v.impact} ${v.id}: ${v.help}: ${v.nodes.slice(0, 3).map(n => n.html).join(' ').slice(0, 300)}`)
}

const moved = Object.keys(JSON.parse(readFileSync(new URL('redirects.json', import.meta.url), 'utf8'))).map(name => name.replace(/\.md$/, '.html'))
const paths = readdirSync(site, { recursive: true }).filter(name => name.endsWith('.html') && name !== '404.html' && !moved.includes(name))
const ids = {}, links = []
for (const scheme of ['light', 'dark']) {
  const page = await open(scheme)
  for (const path of paths) {
    await page.goto(origin + path, { waitUntil: 'load' })
    const played = path.startsWith('playground/')
    if (played) await page.waitForFunction(() => document.querySelector('#state').textContent.startsWith('Ready') && document.querySelector('.course'))
    else await page.waitForFunction(() => document.querySelector('.VPContent.is-home, .vp-doc'))
    if (!played && await page.evaluate(() => document.documentElement.classList.contains('dark')) !== (scheme === 'dark')) find(path, `is not ${scheme}`)
    const width = await page.evaluate(() => document.documentElement.scrollWidth)
    if (width > 360) find(path, `is ${width} px wide in ${scheme}, want 360 at most`)
    for (const finding of await serious(page)) find(path, `${scheme}: ${finding}`)
    if (scheme === 'dark') continue
    ids[path] = await page.$$eval('[id]', all => all.map(e => e.id))
    links.push(...(await page.$$eval('a[href]', all => all.map(a => a.href))).map(href => ({ path, href })))
  }
}

for (const path of moved) links.push({ path, href: new URL(readFileSync(join(site, path), 'utf8').match(/url=([^"]*)"/)[1], origin + path).href })

for (const { path, href } of links) {
  const [target, anchor] = href.split('#')
  if (target.startsWith(repository) && !existsSync(join(site, '../..', decodeURI(target.slice(repository.length))))) find(path, `links to ${href}`)
  if (!target.startsWith(origin)) continue
  const name = decodeURI(target.slice(origin.length)).replace(/(^|\/)$/, '$1index.html')
  if (!ids[name]) find(path, `links to ${href}`)
  else if (anchor && !name.startsWith('playground/') && !ids[name].includes(decodeURIComponent(anchor))) find(path, `links to ${href}, which has no such anchor`)
}

const page = await open('light')
await page.goto(origin)
await page.locator('.VPNavBarSearch button').click()
await page.locator('.VPLocalSearchBox input').fill('token bucket')
await page.locator('.VPLocalSearchBox .result').first().waitFor({ timeout: 10_000 }).catch(() => find('search', 'finds no page about a token bucket'))
await page.keyboard.press('Escape')
await page.setViewportSize({ width: 1280, height: 800 })
const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor)
const light = await background()
await page.locator('.VPNavBarAppearance button').click()
if (await background() === light) find('dark', `the background stays ${light}`)

await browser.close()
server.close()
console.log(`${paths.length} pages, ${links.length} links, ${findings.length} findings`)
for (const finding of findings) console.log(finding)
process.exitCode = findings.length > 0 ? 1 : 0
