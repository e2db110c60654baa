"""The style sheet of the HTML report: narrow and wide screens, light and dark, and paper."""

CSS = """
:root{color-scheme:light dark;--ink:#1b1f24;--soft:#57606a;--page:#fff;--line:#d5d9de;--band:#eef1f4;
--hook:#8fb8ea;--term:#2f6fb5;--kill:#d1483a;--mark:#0b3d70;--alarm:#b3261e;--limit:#9a3412;--hatch:#1b1f24;
--label:19rem;--result:10rem;font:15px/1.45 system-ui,sans-serif;color:var(--ink);background:var(--page)}
@media (prefers-color-scheme:dark){:root{--ink:#e6e9ed;--soft:#a3adb8;--page:#14181d;--line:#3a424c;--band:#222932;
--hook:#4a78ad;--term:#7fb4ee;--kill:#f0776a;--mark:#d3e6fb;--alarm:#ff9d92;--limit:#f5b07a;--hatch:#10141a}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1rem;max-width:80rem;overflow-wrap:anywhere}
h1{font-size:1.4rem;line-height:1.25;margin:0 0 .2rem}h2{font-size:1.1rem;margin:2rem 0 .5rem}
p{margin:0 0 1rem}.soft,small{color:var(--soft)}small{font-size:.85rem}.alarm{color:var(--alarm);font-weight:600}
.facts{display:grid;grid-template-columns:repeat(auto-fill,minmax(13rem,1fr));gap:.5rem 1.5rem;margin:0}
.facts dt{color:var(--soft);font-size:.85rem}.facts dd{margin:0;font-weight:600}.facts .wide{grid-column:span 2}
svg{display:block;overflow:visible}.defs{position:absolute}
.chart{position:relative}
.row{display:grid;grid-template-columns:var(--label) 1fr var(--result);gap:0 1rem;align-items:center;
padding:.15rem 0;position:relative;break-inside:avoid}
.name{min-width:0;line-height:1.25}.lanes{display:block}.result{font-size:.85rem;line-height:1.25}
.row.phase{margin-top:.9rem;padding:.25rem 0;font-weight:600}
.row.phase .name{grid-column:1/-1}.row.phase small{font-weight:400}.row.phase .bars{grid-column:2}
.row.axis{position:sticky;top:0;background:var(--page);z-index:1;border-bottom:1px solid var(--line)}
.row.axis .bars{grid-column:2}
.remark{grid-column:1/-1;font-size:.85rem;color:var(--alarm)}
.backdrop{position:absolute;top:0;bottom:0;left:calc(var(--label) + 1rem);
width:calc(100% - var(--label) - var(--result) - 2rem)}
.hook{fill:url(#hook);stroke:var(--hook)}.hook-ground{fill:var(--hook)}
.term{fill:var(--term);stroke:var(--term)}
.kill{fill:url(#kill);stroke:var(--kill)}.kill-ground{fill:var(--kill)}
.hatch{stroke:var(--hatch);stroke-width:1;fill:none}
.wait{stroke:var(--soft);stroke-width:2;stroke-dasharray:2 4}
.ended{stroke:var(--ink);stroke-width:2}.mark{overflow:visible}
.term-mark{fill:var(--mark)}.kill-mark{stroke:var(--alarm);stroke-width:2.5;fill:none}
.open-mark{stroke:var(--alarm);stroke-width:2.5;fill:none}
.lost{fill:none;stroke:var(--alarm);stroke-dasharray:3 3}
.window{fill:var(--band);stroke:var(--soft)}.phase rect.phase{fill:var(--soft)}
.grid{stroke:var(--line)}.limit{stroke:var(--limit);stroke-width:1.5;stroke-dasharray:6 3}
text{font-size:12px;fill:var(--soft)}text.limit{fill:var(--limit);stroke:none;font-weight:600}
.legend{display:flex;flex-wrap:wrap;gap:.2rem 1.4rem;list-style:none;padding:0;margin:1rem 0 0;font-size:.85rem}
.legend li{display:flex;align-items:center;gap:.4rem}
table{border-collapse:collapse;width:100%;font-size:.85rem}
th,td{text-align:left;vertical-align:top;padding:.3rem .5rem;border-bottom:1px solid var(--line)}
thead{display:table-header-group}tr{break-inside:avoid}th[scope=col],.number{white-space:nowrap}
@media screen and (max-width:48rem){
.name,.result,.remark{background:var(--page)}
body{padding:.75rem}.row{grid-template-columns:1fr auto;--label:0rem;padding:.3rem 0}
.row .bars,.row.phase .bars,.row.axis .bars{grid-column:1/-1;grid-row:2}.remark{grid-row:3}
.row.axis .bars{grid-row:1}.backdrop{left:0;width:100%}
thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
tr{display:grid;grid-template-columns:1fr 1fr;gap:.1rem 1rem;padding:.5rem 0;border-bottom:1px solid var(--line)}
th,td{display:block;border:0;padding:0}th{grid-column:1/-1}
td:empty{display:none}td::before{content:attr(data-label) " ";color:var(--soft)}td.wide{grid-column:1/-1}}
@media print{:root{color-scheme:light;--ink:#000;--soft:#333;--page:#fff;--line:#bbb;--band:#fff;--hook:#fff;
--term:#777;--kill:#fff;--mark:#000;--alarm:#000;--limit:#000;--hatch:#000;--label:13rem;--result:7rem;font-size:11px}
body{padding:0;max-width:none}.row.axis{position:static}.hook,.kill{stroke:#000}h2{break-after:avoid}
.row.phase{break-after:avoid}}
@page{margin:12mm}
"""
