// The page of `mdmem web`. The server answers JSON; each element is made here, and what stands in a memory becomes
// text and nothing else.

const byId = id => document.getElementById(id)
const main = byId("main")

/** Makes an element, named as in CSS: its attributes and listeners, then what stands in it. */
function fill(create, kind, first, ...rest) {
	const [name, ...classes] = kind.split(".")
	const element = create(name)
	const hasAttributes = first?.constructor === Object
	if (classes.length) element.setAttribute("class", classes.join(" "))
	for (const [key, value] of Object.entries(hasAttributes ? first : {}))
		if (typeof value === "function") element.addEventListener(key, value)
		else if (value || value === 0) element.setAttribute(key, value)
	element.append(...[hasAttributes ? "" : first, ...rest].flat(3).filter(child => child || child === 0))
	return element
}

const make = (...given) => fill(name => document.createElement(name), ...given)
const draw = (...given) => fill(name => document.createElementNS("http://www.w3.org/2000/svg", name), ...given)

const address = (view, values) => `#/${view}?${new URLSearchParams(values)}`
const go = (view, values) => (location.hash = address(view, values))
const link = (view, values, ...children) => make("a", {href: address(view, values)}, children)
const button = (label, key, click, kind = "") =>
	make(`button${kind}`, {type: "button", click}, label, key && [" ", make("kbd", key)])

function showPath(path) {
	const at = path.lastIndexOf("/") + 1
	return make("bdi.path", path.slice(0, at), make("b", path.slice(at)))
}

const memoryLink = (path, line) => link("memory", {path, ...(line > 1 && {line})}, showPath(path))

function showMaker(by, time) {
	const then = new Date(time ?? "")
	if (isNaN(then)) return make("span.maker", by)
	const [day, now] = [then, new Date()].map(each => each.toLocaleDateString("sv"))
	const said = day === now ? then.toTimeString().slice(0, 5) : day
	return make("span.maker", make("bdi", by), by && " · ", make("time", {title: then.toLocaleString("sv")}, said))
}

const tell = ({message, hint}) => [message, hint].filter(Boolean).join(" ")
const showEmpty = (title, ...text) => make("div.empty", make("h1", title), make("p", text))
const showLeft = (number, what = "more") => number > 0 && make("p.note", `and ${number.toLocaleString("en")} ${what}`)

/** Says what has happened, until something else is said. */
function say(text, isTrouble) {
	byId("notice").textContent = text
	byId("notice").className = isTrouble ? "trouble" : ""
}

const complain = error => say(tell(error), true)

/** What the server refused: the reason, what to do, and the memory as it is now. */
class Refused extends Error {
	constructor(status, {error, memory}) {
		super(error?.message ?? `the server answered ${status}`)
		Object.assign(this, {status, memory, hint: error?.hint ?? ""})
	}
}

const LOCKED = {
	message: "This page is locked",
	hint: "Open the whole address that `mdmem web` printed; each start of it prints a new one.",
}

let token = location.hash.startsWith("#/") ? "" : location.hash.slice(1)
if (token) sessionStorage.setItem("token", token)
token ||= sessionStorage.getItem("token")

async function ask(question, body) {
	const sent = {headers: {Authorization: `Bearer ${token}`}}
	if (body) Object.assign(sent, {method: "POST", body: JSON.stringify(body)})
	const answer = await fetch(`/api/${question}`, sent)
	const value = await answer.json().catch(() => ({}))
	if (answer.ok) return value
	throw new Refused(answer.status, answer.status === 401 ? {error: LOCKED} : value)
}

const read = (question, values) => ask(`${question}?${new URLSearchParams(values)}`)

async function insist(question, body) {
	for (let wait = 500; ; wait = Math.min(2 * wait, 8000)) {
		try {
			return await ask(question, body)
		} catch (error) {
			if (error instanceof Refused && error.status !== 429) throw error
			showOffline(true)
			await new Promise(wake => setTimeout(wake, wait))
		}
	}
}

const showOffline = isSo => (byId("offline").hidden = !isSo)

const FIRST = 40 // memories that are asked for at first
let review = null // the last answer
let limit = FIRST
let current = null // the row in focus
let shownRows = []
let isStale = false
let isWorking = false
let readAt = 0
const jobs = [] // decisions that are sent one after the other
const done = [] // decisions that can be undone
const accepted = new Map(JSON.parse(sessionStorage.getItem("accepted") ?? "[]")) // the path of each row
const skipped = new Map()
const rejected = new Map() // those of which there is no answer yet
const reasons = new Map() // why a row, or a memory, came back
const cards = new Map() // by path
const rows = new Map() // what is shown of each row
const list = make("div")

const stateOf = ({row}) =>
	rejected.has(row) ? "rejected" : accepted.has(row) ? "accepted" : skipped.has(row) ? "skipped" : ""
const isReady = memory =>
	memory.kind !== "conflict" && !memory.rows_left && memory.rows.every(row => accepted.has(row.row))
const listRows = memories => memories.flatMap(memory => memory.rows)
const keepAccepted = () => sessionStorage.setItem("accepted", JSON.stringify([...accepted]))

/** Sends decisions one by one, and reads between them. */
async function work() {
	if (isWorking) return
	isWorking = true
	while (jobs.length || isStale) {
		const isDue = isStale && (!jobs.length || Date.now() - readAt > 1000)
		await (isDue ? readReview() : jobs[0]().finally(() => jobs.shift())).catch(complain)
	}
	isWorking = false
}

function queue(job) {
	jobs.push(job)
	work()
}

function refresh() {
	isStale = true
	work()
}

async function readReview() {
	isStale = false
	try {
		review = await read("review", {limit})
		showOffline(false)
	} catch (error) {
		if (!(error instanceof Refused)) return showOffline(true)
		review = {memories: [], left: 0, rows: 0, needs: error}
	}
	readAt = Date.now()
	const there = new Set(listRows(review.memories).map(({row}) => row))
	if (!review.left && !review.needs) for (const row of accepted.keys()) if (!there.has(row)) accepted.delete(row)
	keepAccepted()
	paintReview()
}

const sortKey = ({path}) => path.replaceAll("/", "\0")

/** Replaces memories that a change has touched. */
function placeMemories(touched, memories) {
	const before = review.memories
	const last = before.length ? sortKey(before.at(-1)) : ""
	const kept = before.filter(({path, old_path}) => !touched.includes(path) && !touched.includes(old_path))
	const found = memories.filter(memory => !review.left || sortKey(memory) <= last)
	review.memories = [...kept, ...found].sort((one, other) => (sortKey(one) < sortKey(other) ? -1 : 1))
	review.rows += listRows(review.memories).length - listRows(before).length
	paintReview()
}

function mark(marked, memory, chosen) {
	const ids = chosen.map(({row}) => row).filter(row => !marked.has(row) && !rejected.has(row))
	if (!ids.length) return
	for (const row of ids) marked.set(row, memory.path)
	done.push({row: ids[0], takeBack: () => ids.forEach(row => marked.delete(row))})
	settle(memory, ids)
}

function reject(memory, chosen) {
	const ids = chosen.map(({row}) => row).filter(row => !rejected.has(row))
	if (!ids.length) return
	const given = ids.filter(row => accepted.delete(row))
	const entry = {ids, memory, row: ids[0]}
	for (const row of ids) rejected.set(row, memory.path)
	entry.takeBack = () => {
		for (const row of ids) rejected.delete(row)
		for (const row of given) accepted.set(row, memory.path)
		if (entry.isSent) queue(async () => entry.id && undoChange(entry.id, ids[0]))
	}
	done.push(entry)
	queue(() => sendReject(entry))
	settle(memory, ids)
}

/** Shows a decision, and goes on to the next row. */
function settle(memory, ids) {
	const isTold = [memory.path, ...ids].filter(each => reasons.delete(each)).length
	if (isTold) cards.delete(memory.path)
	keepAccepted()
	say("")
	if (isTold) paintReview()
	else dress(memory)
	goOn()
}

async function sendReject(entry) {
	if (!rejected.has(entry.row)) return // undone
	entry.isSent = true
	// What went with another row counts as rejected; and its memory may have its old name again.
	const ids = entry.ids.filter(row => rows.has(row))
	const path = rows.get(ids[0])?.memory.path ?? entry.memory.path
	try {
		if (!ids.length) return
		const {id, touched, memories} = await insist("reject", {path, rows: ids})
		entry.id = id
		placeMemories([...touched, path], memories)
	} catch (error) {
		if (done.includes(entry)) done.splice(done.indexOf(entry), 1)
		comeBack(path, ids, error)
	} finally {
		for (const row of entry.ids) rejected.delete(row)
		review.memories.forEach(dress)
	}
}

/** Shows again what was refused, in its place, with the reason. */
function comeBack(path, ids, error) {
	const memory = error.memory ?? (error.memory === undefined && review.memories.find(each => each.path === path))
	const isThere = ids.length === 1 && memory && memory.rows.some(({row}) => row === ids[0])
	reasons.set(isThere ? ids[0] : path, tell(error))
	cards.delete(path)
	if (!memory) say(`${path}: ${tell(error)}`, true)
	placeMemories([path], memory ? [memory] : [])
}

async function undoChange(id, row) {
	const {touched, memories} = await insist("undo", {id}).finally(refresh)
	placeMemories(touched, memories)
	focusRow(rows.get(row)?.element ?? main)
}

function undo() {
	const entry = done.pop()
	if (!entry) return say("Nothing to undo here. The overview lists each day, with undo.")
	entry.takeBack()
	keepAccepted()
	say("")
	review.memories.forEach(dress)
	focusRow(rows.get(entry.row)?.element ?? main) // it may come back with the answer
}

function commit() {
	const given = [...accepted]
	const message = byId("message")
	if (!given.length) return say("Nothing is accepted yet: a commit takes memories of which all is.")
	focusRow(rows.get(current)?.element ?? main)
	queue(async () => {
		const chosen = {}
		for (const [row, path] of given) (chosen[rows.get(row)?.memory.path ?? path] ??= []).push(row)
		const {commit: id, left_out: left} = await insist("commit", {message: message.value, accepted: chosen})
		done.length = 0
		message.value = ""
		say([id ? `Committed ${id.slice(0, 8)}.` : "Nothing was committed.", ...left].join(" · "), !id)
		await readReview()
	})
}

const SIGNS = {added: "+", removed: "−", renamed: "→", moved: "→", reordered: "↕", repointed: "@", conflict: "!"}
const MARKS = {"+": "ins", "-": "del"}

function showWords(words) {
	const parts = words.map(([mark, text]) => make(MARKS[mark] ?? "span", text))
	const shown = make("span.words", parts)
	const text = shown.textContent
	if (text.length < 3000 && text.split("\n").length < 30) return shown
	shown.classList.add("long")
	const more = button("Show all of it", "", () => shown.classList.remove("long") ?? more.remove(), ".plain")
	return [shown, more]
}

function tellRow(row, became) {
	const told = [
		became === "layout" && "blank lines, line endings or the like",
		became === "conflict" && `a merge left a conflict${row.line ? ` in lines ${row.line} to ${row.last}` : ""}`,
		became === "reordered" && "in another order",
		row.note,
		row.moved && `moved from ${row.old_path || row.old_heading?.join(" › ") || "another place"}`,
		row.parent && `into “${row.parent}”`,
		row.sure === false && "a guess",
		row.cut && "the rest is left out: open it",
	].filter(Boolean)
	return told.length > 0 && make("em", ` (${told.join("; ")})`)
}

function showRow(memory, row) {
	const became = row.change.replace(/.*-/, "")
	const body = make(
		"div.body",
		row.change.startsWith("field") && make("code", `${row.key || "(value)"}: `),
		became === "renamed" && ["renamed from ", showPath(memory.old_path)],
		showWords(row.words),
		tellRow(row, became),
		reasons.has(row.row) && make("p.reason", reasons.get(row.row)),
	)
	const sign = make(`span.sign.${became}`, {"aria-label": became, role: "img"}, SIGNS[became] ?? "~")
	const element = make("li.row", {tabindex: -1, "data-row": row.row}, sign, body, make("span.state"))
	rows.set(row.row, {element, memory})
	return offer(element, findActions(memory, row))
}

function findActions(memory, row) {
	const now = () => rows.get(row.row).memory
	const rest = () => now().rows.filter(each => !stateOf(each))
	const place = () => ({path: now().path, line: row.line ?? 1})
	const decide = {
		a: () => mark(accepted, now(), [row]),
		x: () => reject(now(), [row]),
		...(memory.rows.length > 1 && {A: () => mark(accepted, now(), rest()), X: () => reject(now(), rest())}),
	}
	return {
		...(memory.kind !== "conflict" && decide),
		s: () => mark(skipped, now(), [row]),
		e: () => go("memory", {...place(), edit: 1}),
		o: () => go("memory", place()),
	}
}

function showCard(memory) {
	const makers = new Set(memory.rows.map(({by}) => by))
	const newest = memory.rows.reduce((time, {date}) => (date > time ? date : time), "")
	const body = make("ul")
	let heading = ""
	for (const row of memory.rows) {
		const above = row.heading?.join(" › ") ?? ""
		if (row.kind && row.kind !== "heading" && above !== heading) {
			heading = above
			if (above) body.append(make("li.under", above))
		}
		body.append(showRow(memory, row))
		if (makers.size > 1) body.lastChild.append(showMaker(row.by, row.date))
	}
	return make(
		`section.card.${memory.kind}`,
		{"aria-label": memory.path},
		make(
			"header",
			make("h2", memoryLink(memory.path)),
			memory.kind !== "changed" && make(`span.tag.${memory.kind}`, memory.kind),
			make("span.tag.ready", "ready"),
			makers.size === 1 && showMaker([...makers][0], newest),
		),
		reasons.has(memory.path) && make("p.reason", reasons.get(memory.path)),
		body,
		showLeft(memory.rows_left, "changes more, shown when these are gone"),
	)
}

function dress(memory) {
	for (const row of memory.rows) {
		const {element} = rows.get(row.row) ?? {}
		if (!element) continue
		const state = stateOf(row)
		element.className = `row ${state} ${row.row === current ? "current" : ""}`
		element.querySelector(".state").textContent = state
	}
	cards.get(memory.path)?.element.classList.toggle("is-ready", isReady(memory))
	dressBar()
}

function dressBar() {
	const {memories, left, rows: total} = review
	const given = listRows(memories).filter(({row}) => accepted.has(row)).length
	const ready = memories.filter(isReady).length
	byId("waiting").textContent = total || ""
	document.title = total ? `(${total}) mdmem` : "mdmem"
	byId("bar").hidden = viewed !== "review" || !memories.length
	byId("tally").textContent = `${given} of ${total} accepted · ${ready} of ${memories.length + left} memories ready`
	byId("commit").classList.toggle("main", ready > 0)
}

/** Shows the review as it is now; focus and scroll stay where they are. */
function paintReview() {
	const hadFocus = list.contains(document.activeElement) || document.activeElement === document.body
	const findTop = () => rows.get(current)?.element.getBoundingClientRect().top
	const top = findTop()
	const paths = new Set(review.memories.map(({path}) => path))
	for (const path of cards.keys()) if (!paths.has(path)) cards.delete(path)
	arrange(list, review.memories.map(keepCard))
	const ids = listRows(review.memories).map(({row}) => row)
	const there = new Set(ids)
	for (const row of rows.keys()) if (!there.has(row)) rows.delete(row)
	if (!there.has(current)) {
		const at = shownRows.indexOf(current)
		const isThere = row => there.has(row)
		current = shownRows.slice(at + 1).find(isThere) ?? shownRows.slice(0, Math.max(0, at)).findLast(isThere) ?? ids[0]
	}
	shownRows = ids
	review.memories.forEach(dress)
	dressBar()
	if (viewed !== "review") return
	placeReview()
	markCurrent(rows.get(current)?.element)
	if (hadFocus) focusOn(rows.get(current)?.element ?? main)
	if (top !== undefined && rows.has(current)) scrollBy(0, findTop() - top)
}

function keepCard(memory) {
	const said = JSON.stringify(memory)
	const card = cards.get(memory.path)
	if (card?.said !== said) cards.set(memory.path, {said, element: showCard(memory)})
	else for (const {row} of memory.rows) rows.get(row).memory = memory
	return cards.get(memory.path).element
}

/** Sets the children of an element, and moves none without need. */
function arrange(parent, children) {
	for (const child of [...parent.children]) if (!children.includes(child)) child.remove()
	for (const [at, child] of children.entries())
		if (parent.children[at] !== child) parent.insertBefore(child, parent.children[at] ?? null)
}

function placeReview() {
	const {needs, memories, left, settings} = review
	const note = settings && make("p.reason", settings)
	const more = left > 0 && button(`Show more: ${left} memories are left`, "", loadMore)
	const nothing = ["All that was written is committed. ", link("overview", {}, "See what there is"), "."]
	if (needs) main.replaceChildren(showEmpty("There is no review here", tell(needs)))
	else if (!memories.length) main.replaceChildren(...[note, showEmpty("Nothing to review", nothing)].filter(Boolean))
	else arrange(main, [note, list, more].filter(Boolean))
}

function loadMore() {
	limit = review.memories.length + FIRST
	refresh()
}

const offers = new WeakMap() // what each row can do, by key
const tools = make("div.tools", {role: "group", "aria-label": "What to do with it"})

/** Lets a row be in focus, and says what it can do. */
function offer(element, actions) {
	offers.set(element, actions)
	element.addEventListener("focusin", () => markCurrent(element))
	element.addEventListener("click", ({target}) => {
		if (!target.closest("a, button") && !`${getSelection()}`) focusOn(element)
	})
	return element
}

const findCurrent = () => main.querySelector(".row.current")

/** Marks the row in focus, and puts its buttons there. */
function markCurrent(element) {
	current = element?.dataset.row ?? current
	const old = findCurrent()
	if (old && old !== element) {
		old.classList.remove("current")
		old.tabIndex = -1
	}
	if (!element) return
	element.classList.add("current")
	element.tabIndex = 0
	const body = element.querySelector(".body")
	if (tools.parentNode === body) return
	const act = key => offers.get(element)[key]()
	tools.replaceChildren(...Object.keys(offers.get(element)).map(key => button(KEYS[key][0], key, () => act(key))))
	body.append(tools)
}

const focusOn = element => element?.focus({preventScroll: true})

function focusRow(element) {
	focusOn(element)
	element.scrollIntoView({block: "nearest"})
}

function goOn() {
	const all = listRows(review.memories)
	const at = all.findIndex(({row}) => row === current) + 1
	const next = [...all.slice(at), ...all.slice(0, at)].find(row => !stateOf(row))
	if (next) focusRow(rows.get(next.row).element)
	else if (!review.left) say("All is decided: c commits what is accepted.")
	if (review.left && all.length - at < 20) loadMore()
}

function step(by, isCard) {
	const all = [...main.querySelectorAll(isCard ? ".card" : ".row")]
	const at = all.findIndex(each => each.contains(findCurrent()))
	const next = all[at + by]
	if (next) focusRow(isCard ? next.querySelector(".row") : next)
	else if (viewed === "review" && review.left && by > 0) loadMore()
}

const KEYS = {
	j: ["next", () => step(1)],
	k: ["back", () => step(-1)],
	J: ["memory ↓", () => step(1, true)],
	K: ["memory ↑", () => step(-1, true)],
	a: ["accept"],
	x: ["reject"],
	A: ["accept all"],
	X: ["reject all"],
	s: ["skip"],
	e: ["edit"],
	o: ["open"],
	u: ["undo", undo],
	c: ["commit", commit],
	"/": ["search", () => byId("search").focus()],
	"?": ["keys", () => byId("keys").showModal()],
}

main.addEventListener("keydown", event => {
	if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, textarea")) return
	const isOwn = viewed === "review" || !"uc".includes(event.key)
	const act = offers.get(findCurrent())?.[event.key] ?? (isOwn && KEYS[event.key]?.[1])
	if (!act) return
	event.preventDefault()
	act()
})

let viewed = ""
let turn = 0
let said = "" // what the view shows, as the server said it
let edited = null // the text field, while a memory is edited

/** Shows the view that the address names, or its changes. */
async function show(isAgain) {
	const [view, query] = location.hash.slice(2).split(/\?(.*)/s)
	if (isAgain && (view === "review" || edited || !said)) return
	const mine = ++turn
	if (!isAgain) {
		;[viewed, edited, said] = [view, null, ""]
		say("")
		if (view !== "search") byId("search").value = ""
	}
	for (const each of document.querySelectorAll("nav a"))
		each.setAttribute("aria-current", each.hash.startsWith(`#/${view}`) ? "page" : "false")
	byId("bar").hidden = view !== "review" || !review?.memories.length
	if (view === "review") return viewReview()
	const {line, edit, ...asked} = Object.fromEntries(new URLSearchParams(query))
	let shown
	try {
		const found = await read(view, asked)
		const text = JSON.stringify(found)
		if (mine !== turn || text === said) return
		said = text
		shown = VIEWS[view](found, asked, Number(line), edit && !isAgain)
	} catch (error) {
		if (!(error instanceof Refused)) throw error
		shown = [showEmpty(error.message, error.hint)]
	}
	if (mine === turn) replaceView([shown].flat(3).filter(Boolean), isAgain)
}

function viewReview() {
	if (!review) return
	paintReview()
	const {element} = rows.get(current) ?? {}
	focusOn(element)
	element?.scrollIntoView({block: "center"})
}

/** Shows a view; focus and scroll stay where they are when it was there before. */
function replaceView(shown, isAgain) {
	const listFocus = () => [...main.querySelectorAll("a, button, .row")]
	const [at, y] = [listFocus().indexOf(document.activeElement), scrollY]
	main.replaceChildren(...shown)
	scrollTo(0, isAgain ? y : 0)
	if (isAgain) return listFocus()[at]?.focus({preventScroll: true})
	main.querySelector(".target")?.scrollIntoView({block: "center"})
	if (document.activeElement !== byId("search")) focusOn(main.querySelector("textarea, .row") ?? main)
}

function showMemory(found, asked, line, isEdited) {
	const edit = () => replaceView(editMemory(found, line))
	if (isEdited && !found.cut) return editMemory(found, line)
	const cut = found.cut && make("p.note", "The rest is left out: edit it in your editor.")
	const text = make("div.row.sheet.card", {tabindex: -1}, make("div.body", showText(found, line), cut))
	return make(
		"div.memory",
		make("header.head", make("h1", showPath(found.path)), make("span.note", `${found.line_count} lines`)),
		offer(text, found.cut ? {} : {e: edit}),
		make(
			"aside",
			showSection("Findings", found.findings, each => [make(`b.${each.severity}`, `line ${each.line} `), tell(each)]),
			showSection("What links here", found.backlinks, each => [
				memoryLink(each.path, each.line),
				make("p.note", each.text),
			]),
			showLeft(found.backlinks_left),
			showSection("History", found.history, each => [each.message, " ", showMaker(each.by || "by hand", each.when)]),
			showSection("Uses by agents", found.uses?.times ? [found.uses] : [], ({times, last}) => [
				`${times} times, the last on `,
				showMaker("", last),
			]),
		),
	)
}

const showSection = (title, items, showItem) =>
	items?.length > 0 && [
		make("h2", title),
		make(
			"ul",
			items.map(item => make("li", showItem(item))),
		),
	]

function showText({text, links}, target) {
	let [point, unit, start] = [0, 0, 0]
	const find = wanted => {
		for (; point < wanted && unit < text.length; point++) unit += text.codePointAt(unit) > 0xffff ? 2 : 1
		return unit
	}
	const waiting = links.map(each => ({...each, start: find(each.start), end: find(each.end)}))
	const showLine = (line, number) => {
		const end = start + line.length
		const parts = []
		while (waiting[0]?.start < end) {
			const to = waiting.shift()
			const words = text.slice(to.start, Math.min(to.end, end))
			parts.push(text.slice(start, to.start))
			parts.push(to.path ? link("memory", {path: to.path, line: to.line || 1}, words) : words)
			start = to.start + words.length
		}
		parts.push(text.slice(start, end))
		start = end + 1
		const kind = number + 1 === target ? "div.line.target" : "div.line"
		return make(kind, {"data-number": number + 1}, make("span", parts))
	}
	return make("div.lines", text.replace(/\n$/, "").split("\n").map(showLine))
}

function editMemory({path, text, hash}, line) {
	let base = hash
	const field = (edited = make("textarea", {"aria-label": `Text of ${path}`, spellcheck: "false"}))
	const trouble = make("div", {role: "alert"})
	field.value = field.defaultValue = text
	const close = () => {
		edited = null
		if (history.length > 1) history.back()
		else show()
	}
	const save = async () => {
		try {
			const {id} = await ask("memory", {path, text: field.value, base})
			if (id) done.push({takeBack: () => queue(() => undoChange(id))})
			refresh()
			close()
		} catch (error) {
			trouble.replaceChildren(make("p.reason", tell(error)))
			if (error.status !== 409) return
			const now = await read("memory", {path})
			base = now.hash // who saves again has seen it
			trouble.append(
				make("h2", "It says now"),
				make("pre", now.text),
				make("p", "Save again to put yours in its place."),
			)
		}
	}
	field.addEventListener("keydown", event => {
		if (!(event.ctrlKey || event.metaKey) || event.key !== "s") return
		event.preventDefault()
		save()
	})
	const start = text.split("\n", line - 1).join("\n").length + (line > 1)
	requestAnimationFrame(() => {
		field.setSelectionRange(start, start)
		field.scrollTop = (line - 5) * parseFloat(getComputedStyle(field).lineHeight)
	})
	const head = [make("h1", showPath(path)), button("Cancel", "", close), button("Save", "Ctrl S", save, ".main")]
	return [make("header.head", head), trouble, field]
}

function showHit({path, line}, ...children) {
	const place = make("div", memoryLink(path, line), line > 1 && make("span.note", `:${line}`))
	return offer(make("li.row.hit", {tabindex: -1}, make("div.body", place, children)), {
		o: () => go("memory", {path, line: line ?? 1}),
	})
}

const showList = (items, left) => [make("ul.card", items), showLeft(left)]

function showFound({hits, left_out}, {query}) {
	if (document.activeElement !== byId("search")) byId("search").value = query
	if (!hits.length) return [showEmpty("Nothing found", "No memory has these words.")]
	const showWhere = ({heading}) => make("div.note", [heading].flat().join(" › "))
	return showList(
		hits.map(hit => showHit(hit, showWhere(hit), make("p.words", hit.text))),
		left_out,
	)
}

let typed = 0
byId("search").addEventListener("input", () => {
	clearTimeout(typed)
	typed = setTimeout(() => {
		const change = viewed === "search" ? "replaceState" : "pushState"
		history[change](null, "", address("search", {query: byId("search").value}))
		show()
	}, 60)
})
byId("search").addEventListener("keydown", event => {
	const first = findCurrent() ?? main.querySelector(".row")
	if (!["Enter", "ArrowDown", "Escape"].includes(event.key) || !first) return
	event.preventDefault()
	focusRow(first)
})

function showProposals({proposals, left_out}) {
	countProposals(proposals.length + left_out)
	if (!proposals.length) return [showEmpty("No proposals", "What agents propose for your memories waits here.")]
	return [proposals.map(showProposal), showLeft(left_out)]
}

const countProposals = number => (byId("proposed").textContent = number || "")

function showProposal({id, verb, arguments: given, reason, author, created, diff, problem, hash, path}) {
	const trouble = make("div", {role: "alert"})
	const decide = verdict => async () => {
		try {
			await ask(`proposals/${verdict}`, {id, base: hash})
			await show(true)
		} catch (error) {
			trouble.replaceChildren(make("p.reason", tell(error)))
		}
	}
	const lines = diff
		.split("\n")
		.map(line => make(/^(\+\+\+|---) /.test(line) ? "span" : (MARKS[line[0]] ?? "span"), `${line}\n`))
	const body = make("div.body", make("p", reason), problem && make("p.reason", problem), make("pre", lines), trouble)
	const row = offer(make("div.row", {tabindex: -1}, body), {
		a: decide("accept"),
		x: decide("reject"),
		o: () => go("memory", {path}),
	})
	return make(
		"section.card",
		make("header", make("h2", `${verb} `, make("bdi", given.path ?? id)), showMaker(author, created)),
		row,
	)
}

const LISTS = {
	memories: "Memories",
	stale: "Citations of what has changed",
	broken: "Links that lead nowhere",
	unwritten: "Links to unwritten pages",
	ambiguous: "Links with several meanings",
}

function showItems({items, left_out}, {what}) {
	const shown = items.map(item => showHit(item, make("p.words", item.text)))
	return [make("h1", LISTS[what]), items.length ? showList(shown, left_out) : "There are none."]
}

function showDay({changes, left_out}, {day}) {
	const takeBack = id => () => ask("undo", {id}).then(() => show(true), complain)
	const showChange = ({id, message, by, when, paths, paths_left, undoable}) => {
		const links = paths.map(path => [memoryLink(path), " "])
		const body = make(
			"div.body",
			message,
			" ",
			showMaker(by || "by hand", when),
			make("p.note", links, showLeft(paths_left)),
		)
		return offer(make("li.row.hit", {tabindex: -1}, body), undoable ? {u: takeBack(id)} : {})
	}
	return [make("h1", `Changes of ${day}`), showList(changes.map(showChange), left_out)]
}

function showOverview({status, days, boxes, folders}) {
	countProposals(status.proposals)
	const width = main.clientWidth - 2 * parseFloat(getComputedStyle(main).paddingLeft)
	const list = (name, kind = "b.warning") => {
		const what = name.split(" ")[0]
		return link("list", {what}, make(status[what] ? kind : "b", status[what] ?? 0), name)
	}
	return [
		make(
			"div.figures",
			list("memories", "b"),
			link("review", {}, make("b", status.uncommitted ?? 0), "to review"),
			link("proposals", {}, make("b", status.proposals ?? 0), "proposals"),
			list("stale citations"),
			list("broken links"),
			status.unwritten > 0 && list("unwritten pages", "b"),
			list("ambiguous links"),
		),
		status.setup.map(text => make("p.note", text)),
		make("h2", "Who wrote when"),
		days.length ? drawDays(days, width) : make("p.note", "Nothing was written in the last eight weeks."),
		make("h2", "What there is"),
		make(
			"p.note",
			"A box is a memory, as large as its text, and paler the longer ago it changed. A bar on its left: a link in it leads nowhere.",
		),
		drawBoxes(boxes, folders, width),
	]
}

const DAYS = 56
const sum = numbers => numbers.reduce((total, each) => total + each, 0)
const rect = (kind, x, y, width, height) =>
	draw(`rect.${kind}`, {x, y, width: Math.max(0.5, width - 1), height: Math.max(0.5, height - 1)})
const picture = (label, width, height, shown) =>
	draw("svg.picture", {viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": label}, shown)

function drawDays(days, width) {
	const totals = new Map()
	for (const {by} of days) for (const actor in by) totals.set(actor, (totals.get(actor) ?? 0) + by[actor])
	const actors = [...totals.keys()].sort((one, other) => !one - !other || totals.get(other) - totals.get(one))
	const colour = actor => (actor ? `c${Math.min(actors.indexOf(actor), 5)}` : "c6")
	const highest = Math.max(...days.map(({by}) => sum(Object.values(by))))
	const [height, side, today] = [130, 34, Date.parse(new Date().toISOString().slice(0, 10))]
	const step = (width - side) / DAYS
	const shown = [draw("text", {x: 6, y: 16}, highest), draw("text", {x: 6, y: height}, 0)]
	for (let number = 0; number < DAYS; number++) {
		const day = new Date(today - (DAYS - 1 - number) * 864e5).toISOString().slice(0, 10)
		const x = side + number * step
		if (number % (width < 700 ? 14 : 7) === 0) shown.push(draw("text", {x, y: height + 18}, day.slice(5)))
		const by = days.find(each => each.day === day)?.by ?? {}
		const wrote = actors.filter(actor => by[actor])
		let y = height
		const bars = wrote.map(actor => {
			const tall = (by[actor] / highest) * (height - 8)
			y -= tall
			return rect(colour(actor), x, y, step, tall)
		})
		const words = `${day}: ${wrote.map(actor => `${actor || "by hand"} ${by[actor]}`).join(", ")}`
		const parts = [draw("title", words), rect("room", x, 0, step, height), bars]
		if (wrote.length) shown.push(draw("a", {href: address("day", {day})}, parts))
	}
	const swatch = actor => draw("svg", {width: 10, height: 10}, rect(colour(actor), 0, 0, 11, 11))
	const legend = actors.map(actor => make("span", swatch(actor), ` ${actor || "by hand"}`))
	return [make("p.legend", legend), picture("Changes by day and actor", width, height + 24, shown)]
}

/** Divides a place among items by size, as square as can be. */
function divide(items, place) {
	let {x, y, width, height} = place
	let left = items.toSorted((one, other) => other.size - one.size)
	const scale = (width * height) / sum(left.map(({size}) => size))
	const found = []
	while (left.length) {
		const side = Math.min(width, height)
		let [taken, area, worst] = [0, 0, Infinity]
		for (const {size} of left) {
			const grown = area + size * scale
			const now = Math.max((side ** 2 * left[0].size * scale) / grown ** 2, grown ** 2 / (side ** 2 * size * scale))
			if (now > worst) break
			;[taken, area, worst] = [taken + 1, grown, now]
		}
		const depth = area / side
		const isWide = width >= height
		let at = isWide ? y : x
		for (const item of left.splice(0, taken)) {
			const long = (item.size * scale) / depth
			found.push([item, isWide ? {x, y: at, width: depth, height: long} : {x: at, y, width: long, height: depth}])
			at += long
		}
		if (isWide) [x, width] = [x + depth, width - depth]
		else [y, height] = [y + depth, height - depth]
	}
	return found
}

function drawBoxes(boxes, folders, width) {
	const groups = new Map()
	for (const item of [...boxes, ...folders]) {
		const parts = item.path.split("/")
		const name = (item.memories ? parts : parts.slice(0, -1)).slice(0, 2).join("/") || "/"
		const {items} = groups.get(name) ?? groups.set(name, {name, items: [], size: 0}).get(name)
		items.push({...item, size: item.tokens + 20})
		groups.get(name).size += item.tokens + 20
	}
	const height = Math.min(800, Math.max(420, width / 2))
	const drawGroup = ([{name, items}, {x, y, width: wide, height: tall}]) => {
		const top = tall > 40 ? 16 : 0
		const place = {x, y: y + top, width: Math.max(1, wide - 3), height: Math.max(1, tall - top - 3)}
		const title = top && draw("text.group", {x: x + 2, y: y + 12}, shorten(name, wide))
		return [title, divide(items, place).map(drawBox)]
	}
	const shown = divide([...groups.values()], {x: 3, y: 0, width: width - 3, height}).map(drawGroup)
	return picture("Memories by size", width, height, shown)
}

function shorten(text, width) {
	const room = Math.floor((width - 10) / 6.8)
	return text.length <= room ? text : room > 3 ? `${text.slice(0, room - 1)}…` : ""
}

const AGES = [2, 8, 31, 92] // days

function drawBox([{path, tokens, memories, changed = "", dead}, {x, y, width, height}]) {
	const days = (Date.now() - Date.parse(changed)) / 864e5
	const age = memories ? "folder" : `age${AGES.filter(most => days > most).length}`
	const about = memories ? `${memories} smaller memories` : `changed ${changed.slice(0, 10)}`
	const name = memories ? `${memories} more` : path.replace(/.*\//, "")
	return draw(
		"a",
		{href: memories ? address("search", {query: `path:${path}`}) : address("memory", {path})},
		draw("title", `${path}: ${tokens} tokens, ${about}${dead ? ", a link leads nowhere" : ""}`),
		rect(age, x, y, width, height),
		dead && rect("mark", x, y, Math.min(5, width), height),
		height > 16 && draw("text.on", {x: x + 7, y: y + 13}, shorten(name, width)),
	)
}

/** Waits for what others write; what is shown is read after the number is known. */
async function follow() {
	for (let seen = -1; ;) {
		const {number} = await insist(`changes?since=${seen}`)
		if (number !== seen || !byId("offline").hidden) lookAgain()
		showOffline(false)
		seen = number
	}
}

function lookAgain() {
	if (document.hidden) return
	refresh()
	show(true)
}

const VIEWS = {
	memory: showMemory,
	search: showFound,
	proposals: showProposals,
	overview: showOverview,
	day: showDay,
	list: showItems,
}
const isUnsaved = () => edited && edited.value !== edited.defaultValue
addEventListener("hashchange", () => show())
addEventListener("focus", lookAgain)
addEventListener("beforeunload", event => (jobs.length || isUnsaved()) && event.preventDefault())
byId("keys").append(
	make("h2", {id: "keys-title"}, "Keys"),
	make("p", "They act in the list; each has a button."),
	make(
		"dl",
		Object.entries(KEYS).map(([key, [label]]) => make("div", make("dt", make("kbd", key)), make("dd", label))),
	),
	button("Close", "Esc", () => byId("keys").close()),
)
for (const key of "cujkJK?") byId("bar").append(button(KEYS[key][0], key, KEYS[key][1]))
byId("bar").querySelector("button").id = "commit"
byId("message").addEventListener("keydown", ({key}) => key === "Enter" && commit())
if (!location.hash.startsWith("#/")) history.replaceState(null, "", "#/review")
if (token) {
	show()
	follow().catch(error => main.replaceChildren(showEmpty(error.message, error.hint)))
} else main.replaceChildren(showEmpty(LOCKED.message, LOCKED.hint))
