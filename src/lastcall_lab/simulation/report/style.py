"""What the page of a rehearsal adds to the style of reports."""

CSS = """
:root{--on:#cfe3d4;--down:#e0a83a;--off:#3d444d;--cut:#b07cc6;--serve:#2f6fb5;--short:#e0a83a;--none:#d1483a;
--event:#7a4a00;--result:12rem;--label:11rem}
@media (prefers-color-scheme:dark){:root{--on:#25402f;--down:#c98f2b;--off:#6b7683;--cut:#a56fc0;--serve:#5a94d6;
--short:#c98f2b;--none:#f0776a;--event:#f5c97a}}
.row.lane{padding:.1rem 0}.section{font-weight:600;margin:.9rem 0 .2rem}
.on{fill:var(--on)}.starting{fill:url(#starting)}.starting-ground{fill:var(--on)}
.going-down{fill:var(--down)}.off{fill:var(--off)}
.cut-off{fill:url(#cut-off)}.cut-off-ground{fill:var(--cut)}
.no-storage{fill:url(#no-storage)}.no-storage-ground{fill:var(--cut)}
.hung{fill:url(#hung)}.hung-ground{fill:var(--down)}
.serve{fill:var(--serve)}.short{fill:var(--short)}.none{fill:url(#none)}.none-ground{fill:var(--none)}
.wanted{stroke:var(--ink);stroke-width:1.5}.lost-requests{fill:var(--alarm)}
td.most{width:75%}
.hatch{stroke:var(--ink);opacity:.55}
.event{stroke:var(--event);stroke-width:1.5;stroke-dasharray:3 3}.event-mark{fill:var(--event)}
text.event-label{fill:var(--event);stroke:none;font-weight:700}
td.event-number{color:var(--event);font-weight:700}
tr.event td{font-weight:600}tr.violation td,tr.broken td{color:var(--alarm);font-weight:600}
@media print{:root{--on:#fff;--down:#bbb;--off:#000;--cut:#ddd;--serve:#777;--short:#bbb;--none:#fff;--event:#000}
.on{stroke:#999}}
"""
