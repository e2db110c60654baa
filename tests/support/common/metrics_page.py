"""What a page of metrics says, in Prometheus' text format."""

from prometheus_client.parser import text_string_to_metric_families


def samples(page):
    """The value of each, by its name and the values of its labels in the order of the labels' names."""
    return {
        (one.name, *(value for _, value in sorted(one.labels.items()))): one.value
        for family in text_string_to_metric_families(page.decode())
        for one in family.samples
    }
