import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { slug } from 'github-slugger'
import { defineConfig } from 'vitepress'

// A copy of docs, because pages outside this folder find no module.
const index = readFileSync(new URL('../.pages/README.md', import.meta.url), 'utf8')
const repository = 'https://github.com/weirflow/weir/blob/main/'

// sidebar returns the sections of the index with their links.
function sidebar() {
  return index.split('\n## ').slice(1).map(section => ({
    text: section.split('\n', 1)[0],
    items: [...section.matchAll(/^- \[(.*?)\]\((.*?)(?:README)?\.md\)/gm)].map(([, text, path]) => ({ text: text.replaceAll('`', ''), link: '/' + path })),
  }))
}

// played is the page "Try it" of the repository, which is a page of the site, too.
const played = '/playground/index.html'

// openapi is the file that ../openapi.js makes a page of.
const openapi = 'cmd/weir/internal/api/openapi.json'

// linksToTheRepository sends a link that leaves docs to the file of the repository, and one to the index to its page.
function linksToTheRepository(md) {
  md.core.ruler.push('repository', ({ tokens, env }) => {
    for (const token of tokens.flatMap(t => t.children ?? [])) {
      const href = token.attrGet('href')
      if (token.type !== 'link_open' || !href || /^([a-z]+:|#)/.test(href)) continue
      const path = posix.join('docs', posix.dirname(env.relativePath), href)
      if (path.startsWith('site' + played)) {
        token.attrSet('href', path.slice('site'.length))
        token.attrSet('target', '_self')
      } else if (path === openapi) token.attrSet('href', '/reference/openapi.html')
      else if (!/^docs\/.*\.md(#.*)?$/.test(path)) token.attrSet('href', repository + path)
      else token.attrSet('href', href.replace('README.md', 'index.md'))
    }
  })
}

// The pages of docs that are gone, and the files of the repository, with a heading or without, that say now what they said.
const redirects = JSON.parse(readFileSync(new URL('../redirects.json', import.meta.url), 'utf8'))

// redirect writes a page that leads on for each one that is gone.
function redirect({ outDir }) {
  for (const [from, to] of Object.entries(redirects)) {
    const up = '../'.repeat(from.split('/').length - 1)
    const url = to.startsWith('docs/') ? up + to.slice('docs/'.length).replace('README.md', 'index.md').replace('.md', '.html') : repository + to
    const file = join(outDir, from.replace(/\.md$/, '.html'))
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, `<!doctype html><html lang="en-GB"><meta charset="utf-8"><title>Moved</title><meta http-equiv="refresh" content="0; url=${url}"><a href="${url}">This page has moved.</a></html>\n`)
  }
}

// scrollable gives keys to what a narrow screen has to scroll sideways.
function scrollable(md) {
  md.core.ruler.push('scrollable', ({ tokens }) => {
    for (const token of tokens) if (['table_open', 'code_block'].includes(token.type)) token.attrSet('tabindex', '0')
  })
}

const style = `
.vp-doc pre { overflow-x: auto }
.vp-doc :is(p, li, h1, h2, h3) > code { overflow-wrap: anywhere }
.vp-doc img { background: white }
:root { --vp-code-lang-color: var(--vp-c-text-1); --vp-c-text-3: var(--vp-c-text-2) }
`

export default defineConfig({
  title: 'Weir',
  description: 'Rate limits in a Go program, across machines, and for programs in any language',
  lang: 'en-GB',
  head: [['style', {}, style]],
  srcDir: '.pages',
  outDir: '.dist',
  cacheDir: '.cache',
  rewrites: { 'README.md': 'index.md', ':shelf/README.md': ':shelf/index.md' },
  cleanUrls: false,
  lastUpdated: false,
  buildEnd: redirect,
  ignoreDeadLinks: 'localhostLinks', // addresses of programs that a reader starts
  markdown: {
    anchor: { slugify: slug },
    config: md => md.use(linksToTheRepository).use(scrollable),
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
    languageAlias: { caddyfile: 'nginx' },
  },
  themeConfig: {
    search: { provider: 'local' },
    nav: [{ text: 'Try it', link: '/playground/index.html', target: '_self' }],
    outline: [2, 3],
    sidebar: sidebar(),
  },
})
