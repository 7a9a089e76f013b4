"""Rules, dashboards and monitors."""
